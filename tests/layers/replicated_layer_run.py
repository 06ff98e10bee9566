"""Trains a model around `SavedModelLayer` on one device and on two replicas, with Keras's `fit`.

usage: replicated_layer_run.py FOLDER: that of a SavedModel without dropout. Prints the largest
difference of the weights after training it on one device and on two.
"""

from __future__ import annotations

import contextlib
import sys

import keras
import numpy as np
import tensorflow as tf

from use_st5.layers.saved_model_layer import SavedModelLayer

TEXTS = ["a cat", "dog", "", "how old are you"]
LABELS = np.array([[0.0], [1.0], [0.0], [1.0]])


def trained(strategy: tf.distribute.Strategy | None, folder: str) -> list[np.ndarray]:
    """The weights of a Sequential without `keras.Input` after three steps."""
    keras.utils.set_random_seed(0)
    with strategy.scope() if strategy else contextlib.nullcontext():
        layer = SavedModelLayer(folder, trainable=True)
        model = keras.Sequential([layer, keras.layers.Dense(1, kernel_initializer="ones")])
        model.compile(keras.optimizers.SGD(1e-4), "mse", metrics=["mae"])
    texts = tf.constant(TEXTS)
    model.fit(texts, LABELS, batch_size=4, epochs=3, shuffle=False, verbose=0)
    model.evaluate(texts, LABELS, verbose=0)
    assert model.predict(texts, verbose=0).shape == (4, 1)
    return [np.array(weight) for weight in layer.trainable_weights]


if __name__ == "__main__":
    (cpu,) = tf.config.list_physical_devices("CPU")
    logical = [tf.config.LogicalDeviceConfiguration()] * 2
    tf.config.set_logical_device_configuration(cpu, logical)
    replicas = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    one, two = (trained(strategy, sys.argv[1]) for strategy in (None, replicas))
    sys.stdout.write(str(max(np.abs(a - b).max() for a, b in zip(one, two, strict=True))))
