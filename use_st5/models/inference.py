"""A model of any family as one function, its limit of tokens, and its copy in float32."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np


def inference(model: keras.Model) -> Callable[[Any], Any]:
    """Compiles a model without dropout: int32 `[batch, length]` → `[batch, dimension]`.

    Under TensorFlow it is one graph for all shapes, under JAX one program for each shape.
    """
    if keras.backend.backend() != "tensorflow":
        return lambda ids: model.predict_on_batch(np.asarray(ids))
    import tensorflow as tf

    signature = [tf.TensorSpec([None, None], tf.int32)]
    return tf.function(
        lambda ids: model(ids, training=False), input_signature=signature, autograph=False
    )


def checked_length(model: keras.Model, max_length: int | None) -> int | None:
    """The maximum number of tokens of a text: the argument, or else the limit of the model.

    Raises:
        ValueError: The argument is not between 1 and the limit of the model.
    """
    family = _family(model)
    longest = None if family is None else family.max_tokens(model)
    if max_length is None:
        return longest
    if longest is not None and not 1 <= max_length <= longest:
        raise ValueError(
            f"max_length: expected 1 to {longest:,}, the most tokens that this "
            f"{type(model).__name__} reads, received {max_length:,}."
        )
    return max_length


def _family(model: keras.Model) -> Any:
    # Imported here: families read checkpoints with TensorFlow, but models also run without it.
    from use_st5.models.family import known_family

    return known_family(model)


def in_float32(model: keras.Model) -> keras.Model:
    """A copy with the same weights that computes in float32."""
    copy = type(model).from_config({**model.get_config(), "dtype": "float32"})
    copy.build()
    copy.set_weights(model.get_weights())
    return copy
