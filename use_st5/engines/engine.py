"""The contract of engines, and what a family states about its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args

import numpy as np

from use_st5.hub.model_manifest import ModelManifest

if TYPE_CHECKING:
    from use_st5.engines.onnx_graph import GraphWriter
    from use_st5.engines.session import Session

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
        raise ValueError(
            f"{folder}: expected a model of use_st5 for backend={backend!r}, found a SavedModel "
            "without use_st5.json, or of an older version. Load it with backend='tensorflow'."
        )
    family = families(manifest.family)
    if family is None:
        raise ValueError(
            f"{folder}: backend={backend!r} does not run models of the family {manifest.family}. "
            "Load it with backend='tensorflow'."
        )
    return manifest, family
