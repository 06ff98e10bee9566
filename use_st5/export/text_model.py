"""A folder for ONNX Runtime or LiteRT that takes text: network, tokenizer, facts and readers.

`reader.py` runs it in Python without TensorFlow and without this package: it and the tokenizers
that it needs are copies of the sources here. A USE-DAN or USE Transformer also has `reader.mjs`,
with the tokenizer of the page for browsers; for LiteRT only if its length is fixed.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any, Literal

import numpy as np

import use_st5
from use_st5._imports import require
from use_st5.engines.int8 import lowest_cosine, sentences
from use_st5.engines.token_ids import FramedIds, open_tokenizer
from use_st5.export.folders import check_replaced_folder, write_file_list
from use_st5.export.reader import Encoder
from use_st5.hub.model_manifest import ModelManifest
from use_st5.hub.model_names import model_folder
from use_st5.io.files import atomic_path, sole_writer

Runtime = Literal["onnx", "litert"]

SHORTEST = 16  # tokens, the least fixed length: fewer are too short for a sentence
_FACTS = "model.json"
_NETWORKS = {"onnx": "network.onnx", "litert": "network.tflite"}
# The kind of a tokenizer → the file that holds it.
_TOKENIZERS = {
    **dict.fromkeys(("ngrams", "pieces", "unigrams"), "vocabulary.txt"),
    **dict.fromkeys(("wordpiece", "byte_pair"), "tokenizer.json"),
}
_PACKAGE = "use_st5_tokenizer"
# Sources of this package that the reader imports.
_COPIED = ("engines/ptb_tokens.py", "engines/word_ids.py", "tokenizers/ngram_vocabulary.py")
_HERE = Path(__file__).parent
_LEAST_COSINE, _LEAST_COSINE_INT8 = 0.999, 0.99


def to_text_model(
    name_or_folder: str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    runtime: Runtime,
    length: int | None = None,
    int8: bool = False,
) -> None:
    """Writes a folder that ONNX Runtime or LiteRT runs on texts, without TensorFlow and use_st5.

    Before the folder appears, its reader encodes 504 sentences, and their vectors are compared with
    those of the model: a cosine below 0.999 (with `int8` 0.99) is a ValueError.

    Args:
        name_or_folder: A sentence encoder whose tokenizer has word pieces, byte pairs, or the words
            of a USE model: its folder, or a bundled model's name.
        path: The folder to write. An older one of this kind is replaced.
        runtime: "onnx" (needs the extra `onnx`) or "litert" (needs the extra `litert`).
        length: The fixed number of tokens that the network reads, for accelerators that need a
            fixed shape: texts are padded and cut to it, one text per call. None: any number.
        int8: Whether matrix products are computed in int8. Vectors change.
    """
    source = model_folder(name_or_folder)
    manifest = text_model_manifest(source, length)
    # Imported here, so that a model is refused without waiting for TensorFlow.
    from use_st5.export.runtimes import to_litert, to_onnx

    require("onnxruntime" if runtime == "onnx" else "ai_edge_litert.interpreter", runtime)
    with sole_writer(path):
        check_text_model(path)
        with atomic_path(path) as folder:
            folder.mkdir()
            facts = _facts(manifest, runtime, length, int8=int8)
            _write_readers(source, folder, facts, manifest.tokenizer)
            write = to_onnx if runtime == "onnx" else to_litert
            write(source, folder / _NETWORKS[runtime], length=length, int8=int8)
            text = json.dumps(facts, indent=2, ensure_ascii=False)
            (folder / _FACTS).write_text(text + "\n", encoding="utf-8")
            _check_vectors(source, folder, int8=int8)
            write_file_list(folder)


def check_text_model(path: str | os.PathLike[str]) -> None:
    """Checks that a new folder replaces only an older one of this kind."""
    check_replaced_folder(path, "a model for a runtime")


def text_model_manifest(folder: Path, length: int | None = None) -> ModelManifest:
    """Returns the manifest of a model that can become a text model."""
    manifest = ModelManifest.read(folder)
    if manifest is None or manifest.texts > 1 or manifest.tokenizer not in _TOKENIZERS:
        advice = "Run `use-st5 serve`, or write the network alone (use_st5.export.to_onnx)"
        kinds = ", ".join(_TOKENIZERS)
        raise ValueError(f"{folder}: only encoders with a tokenizer of {kinds}. {advice}.")
    max_length = _max_length(manifest)
    if length is not None and not SHORTEST <= length <= (max_length or length):
        limit = f" to {max_length}" if max_length else " or more"
        raise ValueError(f"Expected a fixed length of {SHORTEST}{limit}, received {length}.")
    return manifest


def _max_length(manifest: ModelManifest) -> int | None:
    limits = (manifest.max_length, manifest.config.get("config", {}).get("max_positions"))
    return min((each for each in limits if each), default=None)


def _facts(
    manifest: ModelManifest, runtime: Runtime, length: int | None, *, int8: bool
) -> dict[str, Any]:
    """The content of `model.json`."""
    file = _TOKENIZERS[manifest.tokenizer or ""]
    return {
        "format": 1,
        "name": manifest.name,
        "license": manifest.metadata.get("license"),
        "languages": manifest.metadata.get("languages"),
        "runtime": runtime,
        "network": _NETWORKS[runtime],
        "precision": "int8" if int8 else manifest.precision,
        "tokenizer": manifest.tokenizer if file == "vocabulary.txt" else file,
        "prompt": manifest.prompts.get(manifest.default_prompt_name or "", ""),
        "dimension": manifest.dimension,
        "max_length": _max_length(manifest),
        "length": length,
        "model_hash": manifest.model_hash,
        "use_st5": use_st5.__version__,
    }


def _write_readers(source: Path, folder: Path, facts: dict[str, Any], kind: str | None) -> None:
    """Writes the tokenizer, and copies the readers, which do not import this package."""
    (folder / "reader.py").write_text(_copied(_HERE / "reader.py"), encoding="utf-8")
    if facts["tokenizer"] == "tokenizer.json":
        tokenizer = open_tokenizer(kind, source / "assets")
        assert isinstance(tokenizer, FramedIds)
        tokenizer.write(folder / "tokenizer.json", facts["length"] or facts["max_length"])
        return
    shutil.copy(source / "assets" / "vocabulary.txt", folder)
    (folder / _PACKAGE).mkdir()
    (folder / _PACKAGE / "__init__.py").touch()
    for name in _COPIED:
        file = _HERE.parent / name
        (folder / _PACKAGE / file.name).write_text(_copied(file), encoding="utf-8")
    # LiteRT.js runs networks of a fixed shape only.
    if facts["runtime"] == "onnx" or facts["length"]:
        shutil.copy(_HERE / "reader.mjs", folder)
        script = (_HERE / "page" / "tokenizer.js").read_text(encoding="utf-8")
        module = f"{script}\nexport {{ NGramTokenizer }};\n"
        (folder / "tokenizer.mjs").write_text(module, encoding="utf-8")


def _copied(file: Path) -> str:
    """The text of a source of this package, as a file of the folder."""
    text = file.read_text(encoding="utf-8")
    code = re.sub(r"from use_st5\.(?:engines|tokenizers)\.", f"from {_PACKAGE}.", text)
    return f"# A file of use_st5 {use_st5.__version__} (Apache License 2.0).\n{code}"


def _check_vectors(source: Path, folder: Path, *, int8: bool) -> None:
    """Refuses a folder whose vectors differ from those of its source."""
    import tensorflow as tf

    from use_st5.export.loading import load_saved_model

    encoder = Encoder(folder)
    length = encoder.facts["length"]
    texts = [
        text
        for text, ids in zip(sentences(), encoder.ids(sentences()), strict=True)
        if length is None or len(ids) < length
    ]
    inputs = tf.constant([encoder.facts["prompt"] + text for text in texts])
    expected = load_saved_model(source).signatures["serving_default"](text=inputs)["embeddings"]
    least = lowest_cosine(np.asarray(expected), encoder.encode(texts))
    limit = _LEAST_COSINE_INT8 if int8 else _LEAST_COSINE
    if not least >= limit:
        advice = "Export in float32." if int8 else "Use backend='onnx' instead."
        raise ValueError(f"{source}: a cosine to the model's vectors is {least:.4f}. {advice}")
