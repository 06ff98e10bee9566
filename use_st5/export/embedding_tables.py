"""The embedding table of an exported encoder, in the storages there are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import keras
import numpy as np
import tensorflow as tf

STORAGES = ("float32", "int8")

_LARGEST = 127


class EmbeddingTable(Protocol):
    """What `Float32Table` and `Int8Table` have in common."""

    storage: str
    variables: list[tf.Variable]
    trainable_variables: list[tf.Variable]

    def lookup(self, ids: tf.Tensor) -> tf.Tensor:
        """Gathers rows: int32 `[...]` → float32 `[..., dim]`, no dense read of the table."""
        ...

    def tracked(self) -> dict[str, tf.Variable]:
        """The variables by the names under which the SavedModel's root holds them."""
        ...


class Float32Table:
    """A trainable table of float32 embeddings, stored as it was trained.

    Args:
        table: float32 `[rows, dim]`.
    """

    storage = "float32"

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


class Int8Table:
    """A table of int8 codes with one float32 scale per row: `embedding = scale · codes`.

    It takes a quarter of the space. The codes are fixed. The scales are trainable, so that
    fine-tuning still reaches the first stage: it changes how much each term weighs (in a USE-DAN's
    average, in a Transformer's input), not its direction. To train directions too, load the model
    by `use_st5.TrainableEncoder.load`, which makes float32 of it.

    Args:
        codes: int8 `[rows, dim]`, not trainable.
        scales: float32 `[rows]`.
    """

    storage = "int8"

    def __init__(self, codes: tf.Variable, scales: tf.Variable) -> None:
        self.variables = [codes, scales]
        self.trainable_variables = [scales]
        self._codes = codes
        self._scales = scales

    @classmethod
    def from_float(cls, table: np.ndarray) -> Int8Table:
        """Rounds float32 `[rows, dim]` to codes in −127 … 127.

        An entry moves by at most half its row's scale, `max |row| / 254`. A row of zeros stays one.

        Raises:
            ValueError: The table holds NaN or infinity.
        """
        if not np.isfinite(table).all():
            raise ValueError(
                "Expected a table of finite numbers to quantise, received NaN or infinity in rows "
                f"{np.flatnonzero(~np.isfinite(table).all(axis=1))[:5].tolist()} (the first five)."
            )
        largest = np.abs(table).max(axis=1)
        scales = np.where(largest > 0, largest / _LARGEST, 1.0).astype(np.float32)
        codes = np.rint(table / scales[:, None]).clip(-_LARGEST, _LARGEST).astype(np.int8)
        return cls(
            tf.Variable(codes, trainable=False, name="embedding_codes"),
            tf.Variable(scales, name="embedding_scales"),
        )

    def lookup(self, ids: tf.Tensor) -> tf.Tensor:
        """Gathers and scales rows: int32 `[...]` → float32 `[..., dim]`."""
        codes = tf.cast(tf.gather(self._codes, ids), tf.float32)
        return codes * tf.expand_dims(tf.gather(self._scales, ids), -1)

    def tracked(self) -> dict[str, tf.Variable]:
        """The variables by the names under which the SavedModel's root holds them."""
        return {"table_codes": self._codes, "table_scales": self._scales}


def stored_table(embeddings: keras.Variable, storage: str) -> EmbeddingTable:
    """A trained table `[rows, dim]` in a storage.

    Args:
        embeddings: The table, float32.
        storage: "float32" keeps the variable itself, "int8" rounds it.

    Raises:
        ValueError: The table is not float32.
    """
    if embeddings.dtype != "float32":
        raise ValueError(
            f"Expected a float32 embedding table, received {embeddings.dtype}. Build the model "
            'with dtype="float32", or "mixed_bfloat16", and give it these weights.'
        )
    if storage == "int8":
        return Int8Table.from_float(embeddings.numpy())
    return Float32Table(*raw_variables([embeddings]))


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


def loaded_table(loaded: Any) -> EmbeddingTable | None:
    """The table that a loaded SavedModel holds apart; None where it holds none."""
    if hasattr(loaded, "table"):
        return Float32Table(loaded.table)
    if hasattr(loaded, "table_codes"):
        return Int8Table(loaded.table_codes, loaded.table_scales)
    return None
