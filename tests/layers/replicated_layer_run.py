"""Trains a model around `SavedModelLayer` on one device and on two replicas, with Keras's `fit`.

usage: replicated_layer_run.py FOREIGN INT8: folders of a SavedModel without dropout and of one of
use_st5 in int8. Prints JSON: the largest difference of the weights after training FOREIGN on one
device and on two, and how many of the weights of INT8 in float32 the two replicas have moved.
"""

from __future__ import annotations

import contextlib
import json
import sys

import keras
import numpy as np
import tensorflow as tf

from use_st5.layers.saved_model_layer import SavedModelLayer

TEXTS = ["a cat", "dog", "", "how old are you"]
LABELS = np.array([[0.0], [1.0], [0.0], [1.0]])


def trained(strategy: tf.distribute.Strategy | None, folder: str, **options: str) -> list:
    """The weights of a Sequential without `keras.Input` before and after three steps."""
    keras.utils.set_random_seed(0)
    with strategy.scope() if strategy else contextlib.nullcontext():
        layer = SavedModelLayer(folder, trainable=True, **options)
        model = keras.Sequential([layer, keras.layers.Dense(1, kernel_initializer="ones")])
        model.compile(keras.optimizers.SGD(1e-4), "mse", metrics=["mae"])
    before = [weight.numpy().copy() for weight in layer.trainable_weights]
    texts = tf.constant(TEXTS)
    model.fit(texts, LABELS, batch_size=4, epochs=3, shuffle=False, verbose=0)
    model.evaluate(texts, LABELS, verbose=0)
    assert model.predict(texts, verbose=0).shape == (4, 1)
    return [before, [np.array(weight) for weight in layer.trainable_weights]]


if __name__ == "__main__":
    (cpu,) = tf.config.list_physical_devices("CPU")
    logical = [tf.config.LogicalDeviceConfiguration()] * 2
    tf.config.set_logical_device_configuration(cpu, logical)
    replicas = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    foreign, int8 = sys.argv[1:]
    (_, one), (_, two) = trained(None, foreign), trained(replicas, foreign)
    difference = max(np.abs(a - b).max() for a, b in zip(one, two, strict=True))
    before, after = trained(replicas, int8, precision="float32")
    moved = [bool((a != b).any()) for a, b in zip(before, after, strict=True)]
    sys.stdout.write(json.dumps({"difference": float(difference), "moved": moved}))
