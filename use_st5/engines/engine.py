"""The contract of engines, what a family states about its own, and graphs in ONNX Runtime."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args

import numpy as np

from use_st5._imports import require
from use_st5.hub.model_manifest import ModelManifest

if TYPE_CHECKING:
    from use_st5.engines.onnx_graph import GraphWriter

Backend = Literal["tensorflow", "onnx", "onnx-int8"]
BACKENDS: tuple[Backend, ...] = get_args(Backend)
_ELSE = "Load the model with backend='tensorflow'."


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


class Session:
    """Runs a graph; `OMP_NUM_THREADS` sets the number of threads, as for OpenMP.

    Attributes:
        inputs: The names of its inputs.
        on_run: A function that is called with the input arrays of each run; None calls nothing.
    """

    def __init__(self, file: Path) -> None:
        self._runtime = require("onnxruntime", "onnx")
        self._file = file
        self.on_run: Callable[[dict[str, np.ndarray]], None] | None = None
        self._open()
        self.inputs = [each.name for each in self._session.get_inputs()]

    def run(self, given: dict[str, np.ndarray]) -> np.ndarray:
        """The vectors, float32 `[texts, dimension]`, for the input arrays by their names."""
        if self.on_run is not None:
            self.on_run(given)
        if os.getpid() != self._process:
            # The threads of the session do not exist in a fork. The old session is kept, because
            # its deletion would wait for them.
            self._of_parent = self._session
            self._open()
        return np.asarray(self._session.run(None, given)[0])

    def _open(self) -> None:
        options = self._runtime.SessionOptions()
        # A list, such as "4,2", is for nested levels. OpenMP ignores what is no number.
        threads = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
        options.intra_op_num_threads = int(threads) if threads.isdecimal() else 0
        options.log_severity_level = 3
        try:
            self._session: Any = self._runtime.InferenceSession(
                os.fspath(self._file), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # ONNX Runtime's own kinds
            reason = f"{self._runtime.__version__} cannot read it: {str(error).splitlines()[0]}"
            raise ValueError(f"{self._file}: ONNX Runtime {reason}. {_ELSE}") from error
        self._process = os.getpid()


class GraphEngine(Engine, Protocol):
    """An engine that runs a graph on ONNX Runtime."""

    session: Session


@dataclass(frozen=True)
class FamilyEngine:
    """How the models of a family run without TensorFlow: `ENGINE` of `models/NAME/engine.py`.

    Attributes:
        write: Adds the network to a graph: the `config` of `use_st5.json`, and the graph → the name
            and the dimension of the vectors.
        open: The file of a graph, the SavedModel's folder, its manifest → the engine.
        without_graph: The engine of float32 that needs no graph; None: it runs a graph.
        exact_first: How many of a network's first products lose too much with one scale for each
            row of int8: with VNNI, and without it.
    """

    write: Callable[[dict[str, Any], GraphWriter], tuple[str, int]]
    open: Callable[[Path, Path, ModelManifest], GraphEngine]
    without_graph: Callable[[Path, ModelManifest], Engine] | None = None
    exact_first: tuple[int, int] = (0, 0)


# The name of a family → its engine, or None (`use_st5.models.engines.family_engine`).
Families = Callable[[str], FamilyEngine | None]


def with_engine(
    folder: Path, manifest: ModelManifest | None, backend: str, families: Families
) -> tuple[ModelManifest, FamilyEngine]:
    """The manifest of a model that has an engine, and its engine."""
    if manifest is None or manifest.family is None:
        raise ValueError(f"{folder}: backend={backend!r} needs use_st5.json. {_ELSE}")
    family = families(manifest.family)
    if family is None:
        raise ValueError(f"{folder}: {backend!r} runs no {manifest.family}. {_ELSE}")
    return manifest, family
