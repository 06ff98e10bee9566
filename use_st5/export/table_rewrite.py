"""An exported USE written anew with its table in another storage."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from use_st5._loading import load_saved_model
from use_st5._model_folder import model_folder
from use_st5._model_manifest import ModelManifest, check_replaceable, read_card
from use_st5.export.embedding_table import EmbeddingTable, table_variables
from use_st5.export.padded_parts import PaddedParts
from use_st5.export.pooled_parts import PooledParts
from use_st5.export.saved_model import write_graph


def rewrite_table(
    name_or_folder: str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    storage: str,
    advice: str,
    convert: Callable[[Any], tuple[EmbeddingTable, int]],
) -> ModelManifest:
    """Writes a model anew; all but its table, card and facts among it, stays as it is.

    Args:
        name_or_folder: The model: its folder, or a bundled model's name.
        path: The folder to write; an older model there, and nothing else, is replaced in one step.
        storage: The storage that the model must have.
        advice: What the error says to a user whose model has another.
        convert: The loaded SavedModel → the new table, and its width.

    Returns:
        The written description.

    Raises:
        FileNotFoundError: There is no such model.
        FileExistsError: `path` holds anything but a model that use_st5 wrote.
        ValueError: The model is not one of use_st5 with a table in this storage.
    """
    check_replaceable(path)
    folder = model_folder(name_or_folder)
    manifest = ModelManifest.read(folder)
    found = manifest.storage if manifest else "unknown (no use_st5.json)"
    if manifest is None or found != storage:
        raise ValueError(
            f"Expected a model of use_st5 with storage {storage} in {folder}, found storage "
            f"{found}. {advice}; a model of another origin stays as it is."
        )
    loaded = load_saved_model(folder)
    if not table_variables(loaded):
        raise ValueError(
            f"Expected a model with an embedding table of its own in {folder}, "
            f"found another kind ({manifest.name}). int8 storage is for such tables alone."
        )
    table, embedding_dim = convert(loaded)
    family = PooledParts if hasattr(loaded, "flat") else PaddedParts
    return write_graph(
        family.of_loaded(loaded, manifest, embedding_dim=embedding_dim).graph(table),
        path,
        name=manifest.name,
        card=read_card(folder),
        metadata=manifest.metadata,
    )
