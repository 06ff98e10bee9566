"""From a float32 table to an int8 one, at a quarter of the size."""

from __future__ import annotations

import os

from use_st5._loading import load_saved_model
from use_st5._model_folder import model_folder
from use_st5.export.int8_table import Int8Table
from use_st5.export.model_manifest import ModelManifest, read_card
from use_st5.export.pooled_graph import parts_of, pooled_graph
from use_st5.export.saved_model import write_graph


def quantize(name_or_folder: str | os.PathLike[str], path: str | os.PathLike[str]) -> ModelManifest:
    """Writes a deep averaging network anew with its embedding table in int8 (see `Int8Table`).

    The vectors change a little: each entry of the table moves by at most half its row's scale.
    Needs the SavedModel alone, not the Python model that it was exported from.

    Args:
        name_or_folder: The model with `storage="float32"`: its folder, or a bundled model's name.
        path: The folder to write; an older model there is replaced in one step.

    Returns:
        The written description.

    Raises:
        FileNotFoundError: There is no such model.
        ValueError: The model is not one of use_st5 with a float32 embedding table.
    """
    folder = model_folder(name_or_folder)
    manifest = ModelManifest.read(folder)
    storage = manifest.storage if manifest else "unknown (no use_st5.json)"
    if manifest is None or storage != "float32":
        raise ValueError(
            f"Expected a model of use_st5 with storage float32 in {folder}, found storage "
            f"{storage}. int8 is as small already; a model of another origin stays as it is."
        )
    loaded = load_saved_model(folder)
    if not hasattr(loaded, "table"):
        raise ValueError(
            f"Expected a model with an embedding table (USE-DAN) in {folder}, found another kind "
            f"({manifest.name}). int8 storage is for such tables alone."
        )
    table = loaded.table
    parts = parts_of(loaded, dimension=manifest.dimension, embedding_dim=table.shape[1])
    return write_graph(
        pooled_graph(parts, Int8Table.from_float(table.numpy())),
        path,
        name=manifest.name,
        card=read_card(folder),
        metadata=manifest.metadata,
    )
