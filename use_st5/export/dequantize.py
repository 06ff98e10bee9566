"""From an int8 table back to one whose every entry can be trained."""

from __future__ import annotations

import os
from typing import Any

import tensorflow as tf

from use_st5._model_manifest import ModelManifest
from use_st5.export.float32_table import Float32Table
from use_st5.export.int8_table import Int8Table
from use_st5.export.table_rewrite import rewrite_table


def dequantize(
    name_or_folder: str | os.PathLike[str], path: str | os.PathLike[str]
) -> ModelManifest:
    """Writes an int8 model anew with a float32 table, for fine-tuning every embedding.

    The vectors stay the same: the table holds the rounded entries, scales multiplied in. The
    folder grows by three bytes for each entry of the table. Needs the SavedModel alone, not the
    Python model that it was exported from, and keeps weights that were fine-tuned.

    Args:
        name_or_folder: The model with `storage="int8"`: its folder, or a bundled model's name.
        path: The folder to write; an older model there, and nothing else, is replaced in one step.

    Returns:
        The written description.

    Raises:
        FileNotFoundError: There is no such model.
        FileExistsError: `path` holds anything but a model that use_st5 wrote.
        ValueError: The model is not one of use_st5 with int8 storage.
    """
    return rewrite_table(
        name_or_folder,
        path,
        storage="int8",
        advice="A float32 table can be trained as it is",
        convert=_float32_table,
    )


def _float32_table(loaded: Any) -> tuple[Float32Table, int]:
    codes = Int8Table(loaded.table_codes, loaded.table_scales)
    rows, embedding_dim = loaded.table_codes.shape
    table = tf.Variable(codes.lookup(tf.range(rows)), name="embeddings")
    return Float32Table(table), embedding_dim
