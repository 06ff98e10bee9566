"""Sentence-T5 from the folders of sentence-transformers, as `sentence-t5-base` to `-xxl` lie."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from use_st5._records import InnerPath, Positive, read_record
from use_st5.convert.assignment import Target, assign_weights, check_shapes
from use_st5.convert.huggingface_t5 import load_sentence_t5, read_t5_config
from use_st5.convert.safetensors_source import SafetensorsSource
from use_st5.models.t5.sentence_t5 import SentenceT5

MODULES = "modules.json"
_KINDS = [
    ["Transformer", "Pooling"],
    ["Transformer", "Pooling", "Normalize"],
    ["Transformer", "Pooling", "Dense"],
    ["Transformer", "Pooling", "Dense", "Normalize"],
]
_KERNEL = "linear.weight"

Kind = TypeVar("Kind")


class _Module(msgspec.Struct):
    type: str
    path: InnerPath


class _Dense(msgspec.Struct):
    out_features: Positive
    bias: bool = True
    activation_function: str = "Identity"


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
    dense, projection, projection_dim = modules.get("Dense"), None, None
    if dense is not None:
        projection, projection_dim = SafetensorsSource(dense), _dense_width(dense)
        width = read_t5_config(modules["Transformer"]).hidden_dim
        check_shapes({_KERNEL: (projection_dim, width)}, projection)
    model = load_sentence_t5(
        modules["Transformer"],
        projection_dim=projection_dim,
        normalize="Normalize" in modules,
        dtype=dtype,
        on_tensor=on_tensor,
    )
    if projection is not None:
        mapping = {_KERNEL: Target(model.projection.kernel, transposed=True)}
        assign_weights(mapping, projection, on_tensor=on_tensor)
    return model


def _modules(folder: Path) -> dict[str, Path]:
    """Kind of each module → its folder."""
    path = folder / MODULES
    entries = _read(path, list[_Module])
    modules = [(entry.type.split(".")[-1], folder / entry.path) for entry in entries]
    kinds = [kind for kind, _ in modules]
    if kinds not in _KINDS:
        raise ValueError(
            f"{path}: expected Transformer, Pooling and perhaps Dense and Normalize, in this "
            f"order; found {', '.join(kinds) or 'nothing'}."
        )
    return dict(modules)


def _check_pooling(folder: Path) -> None:
    path = folder / "config.json"
    settings = _read(path, dict[str, Any])
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
    settings = _read(path, _Dense)
    activation = settings.activation_function.split(".")[-1]
    if settings.bias or activation != "Identity":
        raise ValueError(
            f"{path}: expected a dense layer without bias and activation, found bias "
            f"{settings.bias} and {activation}."
        )
    return settings.out_features


def _read(path: Path, kind: type[Kind]) -> Kind:
    remedy = "Save the model again (sentence-transformers: model.save(folder))."
    return read_record(path, kind, remedy=remedy)
