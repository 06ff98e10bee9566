"""The embedding table of an exported encoder, in whichever storage."""

from __future__ import annotations

from typing import Any, Protocol

import keras
import tensorflow as tf

from use_st5.export.encoder_graph import raw_variables
from use_st5.export.float32_table import Float32Table
from use_st5.export.int8_table import Int8Table


class EmbeddingTable(Protocol):
    """What `Float32Table` and `Int8Table` have in common."""

    storage: str
    variables: list[tf.Variable]
    trainable_variables: list[tf.Variable]

    def lookup(self, ids: tf.Tensor) -> tf.Tensor:
        """Gathers rows: int32 `[...]` → float32 `[..., dim]`."""

    def tracked(self) -> dict[str, tf.Variable]:
        """The variables by the names under which the SavedModel's root holds them."""


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


def table_variables(loaded: Any) -> list[tf.Variable]:
    """The variables of the table of a loaded SavedModel; none where it names no table."""
    names = ("table", "table_codes", "table_scales")
    return [getattr(loaded, name) for name in names if hasattr(loaded, name)]
