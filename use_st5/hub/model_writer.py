"""Writing a SavedModel's folder with its card and its description."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from use_st5 import __version__
from use_st5.hub.model_manifest import (
    CARD_NAME,
    ModelManifest,
    check_replaceable,
    describe_files,
    older_files,
    read_card,
)
from use_st5.io.files import atomic_path, sole_writer

# The facts of a manifest that are still true when the model's weights have changed.
_KEPT = (
    *("name", "max_length", "precision", "metadata", "family", "config", "tokenizer"),
    *("prompts", "default_prompt_name", "similarity_fn_name"),
)


def write_folder(
    root: Any,
    signatures: dict[str, Any],
    path: str | os.PathLike[str],
    *,
    facts: dict[str, Any],
    card: str,
) -> ModelManifest:
    """Writes a SavedModel's root with its card and its description, in one step.

    Args:
        root: What `tf.saved_model.save` takes, for example a loaded SavedModel.
        signatures: Concrete functions by name.
        path: The folder to write.
        facts: The fields of `ModelManifest` that are not about files and versions.
        card: The model card, Markdown.
    """
    with sole_writer(path), atomic_path(path, older=older_files(path)) as temporary:
        check_replaceable(path)
        tf.saved_model.save(root, os.fspath(temporary), signatures=signatures)
        folder = Path(temporary)
        if card:
            (folder / CARD_NAME).write_text(card, encoding="utf-8")
        files, model_hash = describe_files(folder)
        manifest = ModelManifest(**facts, versions=_versions(), files=files, model_hash=model_hash)
        manifest.write(folder)
    return manifest


def write_again(
    loaded: Any, source: Path, path: str | os.PathLike[str], *, dimension: int
) -> ModelManifest:
    """Writes a loaded SavedModel as it is now, with the card and the facts of its folder.

    Args:
        loaded: The SavedModel; weights that were fine-tuned are written as they are.
        source: The folder that it was loaded from.
        path: The folder to write.
        dimension: Dimension of its vectors.
    """
    manifest = ModelManifest.read(source)
    facts: dict[str, Any] = {
        "dimension": dimension,
        "parameters": count_weights(getattr(loaded, "variables", ())),
        "trainable_parameters": count_weights(getattr(loaded, "trainable_variables", ())),
    }
    if manifest is None:
        facts |= {"name": source.name, "max_length": None, "precision": "unknown", "metadata": {}}
    else:
        facts |= {name: getattr(manifest, name) for name in _KEPT}
    return write_folder(loaded, loaded.signatures, path, facts=facts, card=read_card(source))


def count_weights(variables: Sequence[tf.Variable]) -> int:
    """Counts the weights that the variables hold, without states of seed generators (int64)."""
    return sum(v.shape.num_elements() for v in variables if v.dtype != tf.int64)


def _versions() -> dict[str, str]:
    return {"use_st5": __version__, "tensorflow": tf.__version__, "keras": keras.__version__}
