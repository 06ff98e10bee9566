"""What an encoder family hands to the writer of SavedModels."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import keras
import tensorflow as tf


@dataclasses.dataclass(frozen=True, kw_only=True)
class EncoderGraph:
    """The functions, variables and resources that make an encoder's SavedModel.

    The writer (`use_st5.export.saved_model`) is the same for every family; this is all that a
    family must say about itself. `use_st5.export.table_parts` says it for the encoders whose
    embedding table may be stored in int8, `padded_graph` for any Keras model over padded ids.

    Attributes:
        embed_text: string `[batch]`, training → float32 `[batch, dimension]`.
        embed_ids: int32 `[batch, length]`, training → float32 `[batch, dimension]`, free of string
            ops and of hash tables.
        preprocess: string `[batch]` → int32 `[batch, length]`, 0 = padding.
        token_counts: string `[batch]` → int32 `[batch]`, tokens before any is cut; None where none
            is.
        dimension: Dimension of the sentence vector.
        max_length: Tokens beyond this number are cut; None where nothing is.
        storage: "float32", "bfloat16" or "int8".
        variables: All variables, states of seed generators among them.
        trainable_variables: Those that fine-tuning changes.
        regularization_losses: Functions without arguments, each a scalar float32.
        tracked: What else the SavedModel's root must hold, by attribute name: the owners of hash
            tables and assets, and functions that other tools call.
    """

    embed_text: Callable[[tf.Tensor, bool], tf.Tensor]
    embed_ids: Callable[[tf.Tensor, bool], tf.Tensor]
    preprocess: Callable[[tf.Tensor], tf.Tensor]
    token_counts: Callable[[tf.Tensor], tf.Tensor] | None
    dimension: int
    max_length: int | None
    storage: str
    variables: Sequence[tf.Variable]
    trainable_variables: Sequence[tf.Variable]
    regularization_losses: Sequence[Callable[[], tf.Tensor]]
    tracked: dict[str, Any]


def padded_graph(
    model: keras.Model, vectorizer: Any, *, max_length: int | None = None
) -> EncoderGraph:
    """The graph of any encoder over padded ids.

    Args:
        model: int32 `[batch, length]` → float32 `[batch, dimension]`, with an attribute
            `dimension`.
        vectorizer: Trackable; its `padded(text, max_length)` gives int32 `[batch, length]`, and
            its `token_counts(text)` int32 `[batch]`, where there is a `max_length`.
        max_length: Tokens beyond this number are cut; None cuts nothing.
    """

    def preprocess(text: tf.Tensor) -> tf.Tensor:
        return vectorizer.padded(text, max_length)

    return EncoderGraph(
        embed_text=lambda text, training: model(preprocess(text), training=training),
        embed_ids=lambda ids, training: model(ids, training=training),
        preprocess=preprocess,
        token_counts=None if max_length is None else vectorizer.token_counts,
        dimension=model.dimension,
        max_length=max_length,
        storage=model.variable_dtype,
        variables=raw_variables(model.variables),
        trainable_variables=raw_variables(model.trainable_variables),
        regularization_losses=regularization_losses(model.trainable_variables),
        tracked={"vectorizer": vectorizer},
    )


def raw_variables(variables: Sequence[keras.Variable]) -> list[tf.Variable]:
    """The `tf.Variable` behind each Keras variable: SavedModels know no others.

    Raises:
        ValueError: Keras runs on another backend, whose variables are no TensorFlow ones.
    """
    if keras.backend.backend() != "tensorflow":
        raise ValueError(
            "A SavedModel is written from TensorFlow variables, but Keras runs on "
            f"{keras.backend.backend()!r}. Save the weights (model.save_weights), start again with "
            "KERAS_BACKEND=tensorflow, load them and export."
        )
    return [variable.value for variable in variables]


def regularization_losses(
    variables: Sequence[keras.Variable],
) -> list[Callable[[], tf.Tensor]]:
    """One function per regularised variable, as `hub.KerasLayer` collects them."""
    return [_regularization(v) for v in variables if v.regularizer is not None]


def _regularization(variable: keras.Variable) -> Callable[[], tf.Tensor]:
    return lambda: tf.cast(variable.regularizer(variable.value), tf.float32)
