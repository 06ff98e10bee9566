"""Training on batches of strings with several replicas in Keras."""

from __future__ import annotations

import functools
from typing import Any

import tensorflow as tf
from keras.src.backend.tensorflow.trainer import TensorFlowTrainer  # it has no public name

_METHOD = "_maybe_symbolic_build"


def allow_replicated_strings() -> None:
    """Makes Keras's `fit` build a model from the batch of one replica.

    Before the first step, Keras computes the mean of a batch over all replicas, but TensorFlow has
    no mean of strings: `Value for attr 'T' of string … AddN`. Keras reads only the shapes and
    dtypes of the mean, which are those of one replica's batch. This function changes nothing
    without a strategy, or if Keras no longer has the method.
    """
    original = getattr(TensorFlowTrainer, _METHOD, None)
    if original is None or hasattr(original, "__wrapped__") or not tf.distribute.has_strategy():
        return

    @functools.wraps(original)
    def build_from_one_replica(self: Any, iterator: Any = None, data_batch: Any = None) -> None:
        if self._distribute_strategy is not None and iterator is not None:
            _, _, batches = next(iter(iterator))
            data_batch = tf.nest.map_structure(_of_one_replica, next(batches))
        original(self, iterator=None, data_batch=data_batch)

    setattr(TensorFlowTrainer, _METHOD, build_from_one_replica)


def _of_one_replica(value: Any) -> Any:
    replicated = isinstance(value, tf.distribute.DistributedValues)
    return value.values[0] if replicated else value
