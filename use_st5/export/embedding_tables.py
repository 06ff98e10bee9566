"""The embedding table and the kernels of an exported encoder, in each precision."""

from __future__ import annotations

from collections.abc import Sequence

import keras
import tensorflow as tf

from use_st5.export.int8_weights import Int8Weights


class Float32Table:
    """A trainable table of float32 embeddings, stored as it was trained.

    Args:
        table: float32 `[rows, dim]`.
    """

    precision = "float32"

    def __init__(self, table: tf.Variable) -> None:
        self.variables = [table]
        self.trainable_variables = [table]
        self._table = table

    def lookup(self, ids: tf.Tensor) -> tf.Tensor:
        """Gathers rows: int32 `[...]` → float32 `[..., dim]`, no dense read of the table."""
        return tf.gather(self._table, ids)

    def tracked(self) -> dict[str, tf.Variable]:
        """The variables by the names under which the SavedModel's root holds them."""
        return {"table": self._table}


EmbeddingTable = Float32Table | Int8Weights


def stored_table(embeddings: keras.Variable, precision: str) -> EmbeddingTable:
    """A trained table `[rows, dim]` in a precision.

    Args:
        embeddings: The table, float32.
        precision: "float32" keeps the variable itself, "int8" rounds it.
    """
    _check_float32(embeddings)
    if precision == "int8":
        return Int8Weights.of_table(embeddings.numpy())
    return Float32Table(*raw_variables([embeddings]))


def raw_variables(variables: Sequence[keras.Variable]) -> list[tf.Variable]:
    """The `tf.Variable` inside each Keras variable: SavedModels can hold no others."""
    if keras.backend.backend() != "tensorflow":
        raise ValueError(
            "A SavedModel is written from TensorFlow variables, but Keras runs on "
            f"{keras.backend.backend()!r}. Save the weights (model.save_weights), start again with "
            "KERAS_BACKEND=tensorflow, load them and export."
        )
    return [variable.value for variable in variables]


def rounded_kernel(kernel: keras.Variable) -> Int8Weights:
    """A trained matrix `[inputs, outputs]` as codes with a scale for each output."""
    _check_float32(kernel)
    return Int8Weights.of_kernel(kernel.numpy(), kernel.path)


def _check_float32(variable: keras.Variable) -> None:
    """Refuses a variable that is stored apart from its model and is not float32."""
    if variable.dtype != "float32":
        raise ValueError(
            f"{variable.path}: expected float32, received {variable.dtype}. Build the model with "
            'dtype="float32", or "mixed_bfloat16", and give it these weights.'
        )
