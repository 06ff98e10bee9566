"""A model whose resources are measured, known before it is loaded."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from use_st5._model_folder import model_folder
from use_st5._model_manifest import ModelManifest
from use_st5._records import Count, Positive


@dataclass(frozen=True, kw_only=True)
class MeasuredModel:
    """What a record says of a model.

    Attributes:
        name: Its name in tables.
        identity: A text that changes with the model's content.
        dimension: Dimension of the sentence vector.
        max_length: Tokens of a text beyond this number are not read; None: no limit.
        storage: How its table is stored.
        parameters: Number of its weights.
        parameter_bytes: Bytes of its variables in memory; 0 until it was loaded.
    """

    name: str
    identity: str
    dimension: Positive
    max_length: Positive | None
    storage: str
    parameters: Count
    parameter_bytes: Count = 0


def find_models(given: Sequence[str | os.PathLike[str]]) -> list[tuple[Path, MeasuredModel]]:
    """The folders of models given by name or folder, and what their manifests say.

    Models that share a name are called by their folders.

    Raises:
        FileNotFoundError: There is no such model.
        ValueError: None was given, use_st5 did not export one, or two cannot be told apart.
    """
    if not given:
        raise ValueError("Expected at least one model, received none.")
    folders = [model_folder(each) for each in given]
    manifests = [_manifest(folder) for folder in folders]
    shared = Counter(manifest.name for manifest in manifests)
    models = [
        MeasuredModel(
            name=manifest.name if shared[manifest.name] == 1 else folder.name,
            identity=manifest.model_hash,
            dimension=manifest.dimension,
            max_length=manifest.max_length,
            storage=manifest.storage,
            parameters=manifest.parameters,
        )
        for folder, manifest in zip(folders, manifests, strict=True)
    ]
    name, number = Counter(model.name for model in models).most_common(1)[0]
    if number > 1:
        raise ValueError(
            f"Expected models that can be told apart, received {number} called {name} in folders "
            "of one name. Give each once, or rename a folder."
        )
    return list(zip(folders, models, strict=True))


def _manifest(folder: Path) -> ModelManifest:
    manifest = ModelManifest.read(folder)
    if manifest is None:
        raise ValueError(
            f"{folder}: expected a model that use_st5 exported (with use_st5.json), found another "
            "SavedModel, whose ids and limits are not known."
        )
    return manifest
