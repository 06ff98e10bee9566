"""The contract of engines, and the choice of the engine that runs a model."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, Protocol, get_args

import numpy as np

from use_st5.engines.networks import with_engine
from use_st5.hub.model_manifest import FILE_NAME, ModelManifest

Backend = Literal["tensorflow", "onnx", "onnx-int8"]
BACKENDS: tuple[Backend, ...] = get_args(Backend)


class Engine(Protocol):
    """Strings to vectors without TensorFlow.

    Attributes:
        dimension: Dimension of the vectors.
        max_length: The most tokens of a text that are read; None if all are. An engine with a limit
            also has `token_counts`: texts → the number of tokens of each before it is cut, int64
            `[texts]`.
    """

    dimension: int
    max_length: int | None

    def run(self, texts: list[str]) -> np.ndarray:
        """The vectors of a batch of texts, float32 `[texts, dimension]`."""
        ...


def open_engine(folder: Path, manifest: ModelManifest | None, backend: Backend) -> Engine:
    """Opens the engine of a model.

    Args:
        folder: The folder of its SavedModel.
        manifest: The content of its `use_st5.json`.
        backend: "onnx" or "onnx-int8".

    Raises:
        ValueError: The SavedModel is not from use_st5, is damaged, or belongs to a family that has
            no engine; or int8 changes its vectors too much.
        ImportError: A package that the engine needs is missing.
    """
    manifest = with_engine(folder, manifest, backend)
    try:
        return _made(folder, manifest, backend)
    except (KeyError, TypeError, AttributeError, ArithmeticError) as error:
        raise ValueError(
            f"{folder / FILE_NAME}: $.config: expected the configuration of a model of the family "
            f"{manifest.family}, received another ({type(error).__name__}: {error}). Export the "
            "model again."
        ) from error


def _made(folder: Path, manifest: ModelManifest, backend: Backend) -> Engine:
    if manifest.family == "use_dan" and backend == "onnx":
        from use_st5.engines.dan import DANEngine

        manifest.check_contents(folder)
        return DANEngine(folder, manifest)
    from use_st5.engines.onnx_model import graph_engine, onnx_model

    model = onnx_model(folder, manifest, int8=backend == "onnx-int8")
    return graph_engine(model, folder, manifest)
