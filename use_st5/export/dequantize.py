"""From an int8 table back to one whose every entry can be trained."""

from __future__ import annotations

import os

import tensorflow as tf

from use_st5._loading import load_saved_model
from use_st5._model_folder import model_folder
from use_st5.export.float32_table import Float32Table
from use_st5.export.int8_table import Int8Table
from use_st5.export.model_manifest import ModelManifest, read_card
from use_st5.export.pooled_graph import parts_of, pooled_graph
from use_st5.export.saved_model import write_graph


def dequantize(
    name_or_folder: str | os.PathLike[str], path: str | os.PathLike[str]
) -> ModelManifest:
    """Writes an int8 model anew with a float32 table, for fine-tuning every embedding.

    The vectors stay the same: the table holds the rounded entries, scales multiplied in. The
    folder grows by three bytes for each entry of the table. Needs the SavedModel alone, not the
    Python model that it was exported from, and keeps weights that were fine-tuned.

    Args:
        name_or_folder: The model with `storage="int8"`: its folder, or a bundled model's name.
        path: The folder to write; an older model there is replaced in one step.

    Returns:
        The written description.

    Raises:
        FileNotFoundError: There is no such model.
        ValueError: The model is not one of use_st5 with int8 storage.
    """
    folder = model_folder(name_or_folder)
    manifest = ModelManifest.read(folder)
    storage = manifest.storage if manifest else "unknown (no use_st5.json)"
    if manifest is None or storage != "int8":
        raise ValueError(
            f"Expected a model of use_st5 with storage int8 in {folder}, found storage {storage}. "
            "A float32 table can be trained as it is; a model of another origin stays as it is."
        )
    loaded = load_saved_model(folder)
    codes = Int8Table(loaded.table_codes, loaded.table_scales)
    rows, embedding_dim = loaded.table_codes.shape
    table = Float32Table(tf.Variable(codes.lookup(tf.range(rows)), name="embeddings"))
    parts = parts_of(loaded, dimension=manifest.dimension, embedding_dim=embedding_dim)
    return write_graph(
        pooled_graph(parts, table),
        path,
        name=manifest.name,
        card=read_card(folder),
        metadata=manifest.metadata,
    )
