"""Opens the engine of a model; its ONNX file is in its folder, in the cache, or newly made."""

from __future__ import annotations

import atexit
import dataclasses
import hashlib
import json
import shutil
import tempfile
import warnings
from pathlib import Path

from use_st5.engines.engine import Backend, Engine, Families, FamilyEngine, GraphEngine, with_engine
from use_st5.engines.int8 import has_vnni, write_int8_model
from use_st5.engines.onnx_graph import GraphWriter
from use_st5.engines.weights import Weights
from use_st5.hub.cache import ENGINES, kept_content
from use_st5.hub.model_manifest import ENGINE_NAME, FILE_NAME, ModelManifest, describe_files
from use_st5.io.files import file_sha256

# Changes when graphs are written differently: graphs in the cache are then made again.
_VERSION = "8"
_HASH = "sha256.txt"  # of the graph, next to it
_LARGEST = 2**31  # bytes of a Protocol Buffers message


def open_engine(
    folder: Path, manifest: ModelManifest | None, backend: Backend, families: Families
) -> Engine:
    """Opens the engine of the model in a folder for the backend "onnx" or "onnx-int8"."""
    manifest, family = with_engine(folder, manifest, backend, families)
    try:
        if family.without_graph and backend == "onnx":
            manifest.check_contents(folder)
            return family.without_graph(folder, manifest)
        model = onnx_model(folder, manifest, family, int8=backend == "onnx-int8")
        return family.open(model, folder, manifest)
    except (KeyError, TypeError, AttributeError, ArithmeticError) as error:
        reason = f"{type(error).__name__}: {error}"
        where = f"{folder / FILE_NAME}: $.config"
        raise ValueError(f"{where} is not of the family {manifest.family} ({reason}).") from error


def onnx_model(
    folder: Path, manifest: ModelManifest, family: FamilyEngine, *, int8: bool = False
) -> Path:
    """Returns the file of a model's graph, which is made if there is none."""
    if ENGINE_NAME in manifest.files and not int8:
        manifest.check_contents(folder, [ENGINE_NAME])
        return folder / ENGINE_NAME
    kind = ("-int8" if has_vnni() else "-int7") if int8 else ""
    # All that a graph is made from; `content_hash` is not the hash that a manifest claims.
    facts = manifest.family, manifest.config, manifest.tokenizer, manifest.max_length
    identity = json.dumps([manifest.content_hash, *facts], sort_keys=True).encode()
    key = f"{hashlib.sha256(identity).hexdigest()[:32]}-{_VERSION}{kind}"

    def write(content: Path) -> None:
        content.mkdir()
        graph = content / ENGINE_NAME
        if int8:
            source = onnx_model(folder, manifest, family)

            def engine(path: Path) -> GraphEngine:
                return family.open(path, folder, manifest)

            write_int8_model(source, graph, manifest.name, engine, family.exact_first)
        else:
            manifest.check_contents(folder)
            write_onnx_model(folder, manifest, family, graph)
        (content / _HASH).write_text(file_sha256(graph), encoding="utf-8")

    try:
        content = kept_content(
            ENGINES, key, f"the ONNX graph of {folder}", write, is_intact=_is_intact
        )
    except OSError as error:  # If the model's own files are to blame, the error comes again.
        advice = "The graph is made for this process alone. Set XDG_CACHE_HOME to another folder."
        warnings.warn(f"The cache cannot be used ({error}). {advice}", stacklevel=2)
        scratch = tempfile.mkdtemp(prefix="use_st5_")
        atexit.register(shutil.rmtree, scratch, ignore_errors=True)
        content = Path(scratch, "content")
        write(content)
    return content / ENGINE_NAME


def _is_intact(content: Path) -> bool:
    """Whether a graph in the cache is as it was written."""
    try:
        expected = (content / _HASH).read_text(encoding="utf-8")
        return file_sha256(content / ENGINE_NAME) == expected
    except (OSError, ValueError):
        return False


def add_onnx_model(folder: Path, manifest: ModelManifest | None, families: Families) -> None:
    """Writes the graph of a model into its folder for `onnx_model`, if its engine needs one."""
    manifest, family = with_engine(folder, manifest, "onnx", families)
    if family.without_graph is not None:
        return
    write_onnx_model(folder, manifest, family, folder / ENGINE_NAME)
    files, _ = describe_files(folder)
    dataclasses.replace(manifest, files=files).write(folder)


def write_onnx_model(
    folder: Path, manifest: ModelManifest, family: FamilyEngine, path: Path
) -> None:
    """Writes the graph of a model into a file."""
    if 4 * manifest.parameters >= _LARGEST:
        most = f"{_LARGEST:,} bytes in float32, the most of an ONNX file"
        raise ValueError(f"{folder}: larger than {most}. Load it with backend='tensorflow'.")
    weights = Weights(folder)
    graph = GraphWriter(weights)
    vectors, dimension = family.write(manifest.config, graph)
    weights.check_all_read()
    facts = {"model_hash": manifest.model_hash, "version": _VERSION}
    path.write_bytes(graph.model(vectors, dimension, facts).SerializeToString())
