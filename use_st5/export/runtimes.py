"""Exported encoders for ONNX Runtime and LiteRT, from ids to vectors.

Both formats hold the network and its table, not the tokenizer: ids int32 `[batch, length]`, 0 =
padding, in; float32 `[batch, dimension]` out. The ids are those of the SavedModel's `preprocess`:

    loaded = tf.saved_model.load("my_model")
    ids = loaded.preprocess(["How old are you?"]).numpy()

Batch and length are free in both. ONNX Runtime takes them as they come:

    session = onnxruntime.InferenceSession("my_model.onnx")
    (vectors,) = session.run(["embeddings"], {"ids": ids})

LiteRT plans its memory for one shape: the first call with a new one takes longer, so that rows of a
few lengths (`use_st5.tokenizers.length_buckets.pad_to_bucket`) are faster:

    runner = ai_edge_litert.interpreter.Interpreter("my_model.tflite").get_signature_runner("ids")
    vectors = runner(ids=pad_to_bucket(ids).numpy())["embeddings"]
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import tensorflow as tf

from use_st5._files import atomic_path
from use_st5._imports import require
from use_st5._loading import load_saved_model
from use_st5._model_folder import model_folder

_OPSET = 18
# Of a Protocol Buffers message, and of what a FlatBuffers file can address.
_LARGEST = 2**31


def to_onnx(name_or_folder: str | os.PathLike[str], path: str | os.PathLike[str]) -> None:
    """Writes the part of an exported encoder that turns ids into vectors as an ONNX file.

    Input `ids`, output `embeddings`; operator set 18. Needs the extra `onnx`.

    Args:
        name_or_folder: The model: its folder, or a bundled model's name.
        path: The file to write, as a rule `….onnx`; an older one is replaced.

    Raises:
        FileNotFoundError: There is no such model.
        ImportError: tf2onnx is missing.
        ValueError: The model has no function of ids, or is too large for one file (2 GiB).
    """
    tf2onnx = require("tf2onnx", "onnx")
    loaded = _loaded(model_folder(name_or_folder))
    proto, _ = tf2onnx.convert.from_function(
        tf.function(lambda ids: loaded.signatures["ids"](ids=ids)),
        input_signature=[tf.TensorSpec([None, None], tf.int32, name="ids")],
        opset=_OPSET,
    )
    _write(path, proto.SerializeToString())


def to_litert(name_or_folder: str | os.PathLike[str], path: str | os.PathLike[str]) -> None:
    """Writes the part of an exported encoder that turns ids into vectors as a LiteRT file.

    Its signature `ids` takes `ids` and gives `embeddings`. TensorFlow itself converts; the
    interpreter comes with the extra `litert`.

    Args:
        name_or_folder: The model: its folder, or a bundled model's name.
        path: The file to write, as a rule `….tflite`; an older one is replaced.

    Raises:
        FileNotFoundError: There is no such model.
        ValueError: The model has no function of ids, or is too large for one file (2 GiB).
    """
    folder = model_folder(name_or_folder)
    _loaded(folder)  # brings in the ops that the converter meets on its way to the signature
    converter = tf.lite.TFLiteConverter.from_saved_model(os.fspath(folder), signature_keys=["ids"])
    _write(path, converter.convert())


def _loaded(folder: Path) -> Any:
    """The SavedModel, which must have the signature and a size that one file can hold."""
    loaded = load_saved_model(folder)
    if "ids" not in loaded.signatures:
        raise ValueError(
            f"Expected a SavedModel of use_st5, with the signature 'ids', in {folder}, found "
            f"the signatures {', '.join(loaded.signatures) or 'none'}."
        )
    size = sum(v.shape.num_elements() * v.dtype.size for v in loaded.variables)
    if size >= _LARGEST:
        raise ValueError(
            f"Expected a model of less than {_LARGEST:,} bytes, the most that one file of ONNX or "
            f'LiteRT holds, found {size:,} in {folder}. Try one with precision="int8".'
        )
    return loaded


def _write(path: str | os.PathLike[str], content: bytes) -> None:
    with atomic_path(path) as temporary:
        temporary.write_bytes(content)
