"""The ONNX file of a model: in its folder, in the cache, or newly made from its SavedModel."""

from __future__ import annotations

import atexit
import dataclasses
import hashlib
import json
import shutil
import tempfile
import warnings
from functools import partial
from pathlib import Path

import numpy as np

from use_st5.engines.dan import GraphDANEngine
from use_st5.engines.int8 import has_vnni, write_int8_model
from use_st5.engines.networks import rounded_kernels, with_engine, write_network
from use_st5.engines.onnx_graph import GraphWriter
from use_st5.engines.transformer import TransformerEngine
from use_st5.engines.weights import named_weights
from use_st5.hub.model_manifest import ENGINE_NAME, ModelManifest, describe_files
from use_st5.io.cache import ENGINES, kept_content
from use_st5.io.files import file_sha256

# Changes when graphs are written differently: graphs in the cache are then made again.
_VERSION = "8"
_HASH = "sha256.txt"  # of the graph, next to it
_LARGEST = 2**31  # bytes of a Protocol Buffers message


def onnx_model(folder: Path, manifest: ModelManifest, *, int8: bool = False) -> Path:
    """Returns the file of a model's graph, which is made if there is none.

    Args:
        folder: The folder of its SavedModel.
        manifest: The content of its `use_st5.json`.
        int8: Whether matrix products are computed in int8.

    Raises:
        ImportError: The graph must be made, and the package onnx is missing.
        ValueError: The model has no graph (see `write_network`), its files are damaged, or int8
            changes its vectors too much (see `write_int8_model`).

    Warns:
        UserWarning: The cache cannot be used; the graph is made for this process alone.
    """
    if ENGINE_NAME in manifest.files and not int8:
        manifest.check_contents(folder, [ENGINE_NAME])
        return folder / ENGINE_NAME
    kind = ("-int8" if has_vnni() else "-int7") if int8 else ""
    key = f"{_identity(manifest)[:32]}-{_VERSION}{kind}"

    def write(content: Path) -> None:
        content.mkdir()
        graph = content / ENGINE_NAME
        if int8:
            source = onnx_model(folder, manifest)
            run, feeds = partial(_vectors, folder, manifest), partial(_given, folder, manifest)
            write_int8_model(source, graph, manifest, run, feeds)
        else:
            manifest.check_contents(folder)
            write_onnx_model(folder, manifest, graph)
        (content / _HASH).write_text(file_sha256(graph), encoding="utf-8")

    try:
        content = kept_content(
            ENGINES, key, f"the ONNX graph of {folder}", write, is_intact=_is_intact
        )
    except OSError as error:  # If the model's own files are to blame, the error comes again.
        warnings.warn(
            f"The cache cannot be used ({error}): the ONNX graph of {folder} is made for this "
            "process alone. Set XDG_CACHE_HOME to a folder that can be written.",
            stacklevel=2,
        )
        scratch = tempfile.mkdtemp(prefix="use_st5_")
        atexit.register(shutil.rmtree, scratch, ignore_errors=True)
        content = Path(scratch, "content")
        write(content)
    return content / ENGINE_NAME


def _identity(manifest: ModelManifest) -> str:
    """A hash of all that a graph is made from.

    The hash that a manifest claims is not used: `content_hash` follows from the sha256 of the
    files, with which `onnx_model` compares the files before it writes a graph.
    """
    facts = manifest.family, manifest.config, manifest.tokenizer, manifest.max_length
    source = json.dumps([manifest.content_hash, *facts], sort_keys=True)
    return hashlib.sha256(source.encode()).hexdigest()


def _is_intact(content: Path) -> bool:
    """Whether a graph in the cache is as it was written."""
    try:
        expected = (content / _HASH).read_text(encoding="utf-8")
        return file_sha256(content / ENGINE_NAME) == expected
    except (OSError, ValueError):
        return False


def graph_engine(
    graph: Path, folder: Path, manifest: ModelManifest
) -> GraphDANEngine | TransformerEngine:
    """The engine that runs a graph of a model."""
    kind = GraphDANEngine if manifest.family == "use_dan" else TransformerEngine
    return kind(graph, folder, manifest)


def _vectors(folder: Path, manifest: ModelManifest, graph: Path, texts: list[str]) -> np.ndarray:
    engine = graph_engine(graph, folder, manifest)
    return np.concatenate([engine.run(texts[at : at + 64]) for at in range(0, len(texts), 64)])


def _given(
    folder: Path, manifest: ModelManifest, graph: Path, texts: list[str]
) -> list[dict[str, np.ndarray]]:
    """The arrays that the graph's inputs get, for each of its runs."""
    engine = graph_engine(graph, folder, manifest)
    feeds: list[dict[str, np.ndarray]] = []
    engine.session.on_run = feeds.append
    for at in range(0, len(texts), 64):
        engine.run(texts[at : at + 64])
    return feeds


def add_onnx_model(folder: Path, manifest: ModelManifest | None) -> None:
    """Writes the graph of a model into its folder for `onnx_model`; does nothing for a USE-DAN.

    Args:
        folder: The folder of its SavedModel, which nobody else reads yet.
        manifest: The content of its `use_st5.json`.

    Raises:
        ImportError: The package onnx is missing.
        ValueError: The model has no engine (see `open_engine`).
    """
    manifest = with_engine(folder, manifest, "onnx")
    if manifest.family == "use_dan":
        return
    write_onnx_model(folder, manifest, folder / ENGINE_NAME)
    files, _ = describe_files(folder)
    dataclasses.replace(manifest, files=files).write(folder)


def write_onnx_model(folder: Path, manifest: ModelManifest, path: Path) -> None:
    """Writes the graph of a model.

    Args:
        folder: The folder of its SavedModel.
        manifest: The content of its `use_st5.json`.
        path: The file to write.

    Raises:
        ImportError: The package onnx is missing.
        ValueError: The model has no graph, or is too large for one file (2 GiB).
    """
    family = manifest.family or ""
    if 4 * manifest.parameters >= _LARGEST:
        raise ValueError(
            f"{folder}: expected a model of less than {_LARGEST:,} bytes in float32, the most that "
            "one file of ONNX holds. Load it with backend='tensorflow'."
        )
    graph = GraphWriter()
    rounded = rounded_kernels(family, manifest.config)
    table, weights = named_weights(folder, rounded=rounded)
    vectors, dimension = write_network(family, manifest.config, table, weights, graph)
    weights.check_all_read()
    facts = {"model_hash": manifest.model_hash, "version": _VERSION}
    path.write_bytes(graph.model(vectors, dimension, facts).SerializeToString())
