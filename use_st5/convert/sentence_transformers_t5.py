"""Sentence-T5 from the folders of sentence-transformers, as `sentence-t5-base` to `-xxl` lie."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from use_st5.convert.assignment import Target, assign_weights
from use_st5.convert.huggingface_t5 import load_sentence_t5
from use_st5.convert.safetensors_source import SafetensorsSource
from use_st5.models.sentence_t5 import SentenceT5

MODULES = "modules.json"
_KINDS = [
    ["Transformer", "Pooling"],
    ["Transformer", "Pooling", "Normalize"],
    ["Transformer", "Pooling", "Dense"],
    ["Transformer", "Pooling", "Dense", "Normalize"],
]


def load_sentence_transformers(
    folder: str | os.PathLike[str],
    *,
    dtype: Any = None,
    on_tensor: Callable[[str], None] = lambda name: None,
) -> SentenceT5:
    """A Sentence-T5 with the weights of a sentence-transformers folder.

    Expected are a T5 encoder, mean pooling, and where there are any a dense layer without bias and
    activation, and the normalisation (`modules.json`, `1_Pooling`, `2_Dense`, `3_Normalize`).

    Args:
        folder: The folder with `modules.json`.
        dtype: Keras dtype policy of the model, such as "bfloat16"; the projection stays float32.
        on_tensor: Called with the name of each tensor that is in place.

    Raises:
        FileNotFoundError: A file is missing.
        ValueError: The folder holds other modules, or weights that do not fit.
    """
    modules = _modules(Path(folder))
    _check_pooling(modules["Pooling"])
    dense = modules.get("Dense")
    projection_dim = None if dense is None else _dense_width(dense)
    model = load_sentence_t5(
        modules["Transformer"],
        projection_dim=projection_dim,
        normalize="Normalize" in modules,
        dtype=dtype,
        on_tensor=on_tensor,
    )
    if dense is not None:
        mapping = {"linear.weight": Target(model.projection.kernel, transposed=True)}
        assign_weights(mapping, SafetensorsSource(dense), on_tensor=on_tensor)
    return model


def _modules(folder: Path) -> dict[str, Path]:
    """Kind of each module → its folder."""
    path = folder / MODULES
    entries = _read(path)
    try:
        modules = [(entry["type"].split(".")[-1], folder / entry["path"]) for entry in entries]
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path}: expected a list of modules ({error!r}).") from error
    kinds = [kind for kind, _ in modules]
    if kinds not in _KINDS:
        raise ValueError(
            f"{path}: expected Transformer, Pooling and perhaps Dense and Normalize, in this "
            f"order; found {', '.join(kinds) or 'nothing'}."
        )
    return dict(modules)


def _check_pooling(folder: Path) -> None:
    path = folder / "config.json"
    settings = _read(path)
    # Before version 6 each kind had a switch of its own.
    old = {
        name.removeprefix("pooling_mode_")
        for name, value in settings.items()
        if name.startswith("pooling_mode_") and value is True
    }
    mode = settings.get("pooling_mode") or "+".join(sorted(old))
    if mode not in ("mean", "mean_tokens"):
        raise ValueError(f"{path}: expected the pooling to be the mean, found {mode!r}.")


def _dense_width(folder: Path) -> int:
    path = folder / "config.json"
    settings = _read(path)
    activation = str(settings.get("activation_function", "Identity")).split(".")[-1]
    if settings.get("bias", True) or activation != "Identity":
        raise ValueError(
            f"{path}: expected a dense layer without bias and activation, found bias "
            f"{settings.get('bias', True)} and {activation}."
        )
    return settings["out_features"]


def _read(path: Path) -> Any:
    if not path.is_file():
        raise FileNotFoundError(f"{path}: expected a file of sentence-transformers, found none.")
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path}: expected JSON ({error}).") from error
