"""Exported encoders for ONNX Runtime and LiteRT, from ids to vectors.

Both formats contain the network and its table, but not the tokenizer
(`use_st5.export.to_text_model` writes both). The input is ids, int32 `[batch, length]`, 0 =
padding; the output is float32 `[batch, dimension]`. The ids are those of the SavedModel's
`preprocess`:

    loaded = tf.saved_model.load("my_model")
    ids = loaded.preprocess(["How old are you?"]).numpy()

Batch and length are free in both, unless a length is fixed. ONNX Runtime takes any shape:

    session = onnxruntime.InferenceSession("my_model.onnx")
    (vectors,) = session.run(["embeddings"], {"ids": ids})

LiteRT plans its memory for one shape, and the first call with a new shape takes longer. So rows of
only a few lengths (`use_st5.tokenizers.tokenizer.pad_to_bucket`) are faster:

    runner = ai_edge_litert.interpreter.Interpreter("my_model.tflite").get_signature_runner("ids")
    vectors = runner(ids=pad_to_bucket(ids).numpy())["embeddings"]
"""

from __future__ import annotations

import logging
import os
import tempfile
from pathlib import Path
from typing import Any

import tensorflow as tf

from use_st5._imports import require
from use_st5.export.loading import load_saved_model
from use_st5.hub.model_names import model_folder
from use_st5.io.files import atomic_path

_OPSET = 18
# The most bytes of a Protocol Buffers message, and that a FlatBuffers file can address.
_LARGEST = 2**31


def to_onnx(
    name_or_folder: str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    length: int | None = None,
    int8: bool = False,
) -> None:
    """Writes the part of an exported encoder that turns ids into vectors as an ONNX file.

    Input `ids`, output `embeddings`; operator set 18. Needs the extra `onnx`.

    Args:
        name_or_folder: The model: its folder, or a bundled model's name.
        path: The file to write, usually `….onnx`; an older one is replaced.
        length: The fixed length of ids `[1, length]`, for accelerators that need a fixed shape.
            None allows any `[batch, length]`.
        int8: Whether matrix products are computed in int8, with weights of 7 bits, because
            processors without VNNI add in 16 bits. Vectors change.
    """
    tf2onnx = require("tf2onnx", "onnx")
    loaded = _loaded(model_folder(name_or_folder))
    network = _network(loaded, length)
    proto, _ = tf2onnx.convert.from_function(network, network.input_signature, opset=_OPSET)
    content = proto.SerializeToString()
    with atomic_path(path) as temporary:
        temporary.write_bytes(_int8_onnx(content) if int8 else content)


def to_litert(
    name_or_folder: str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    length: int | None = None,
    int8: bool = False,
) -> None:
    """Writes the part of an exported encoder that turns ids into vectors as a LiteRT file.

    Its signature `ids` takes `ids` and gives `embeddings`. TensorFlow itself converts; the
    interpreter comes with the extra `litert`.

    Args:
        name_or_folder: The model: its folder, or a bundled model's name.
        path: The file to write, usually `….tflite`; an older one is replaced.
        length: The fixed length of ids `[1, length]`, for accelerators that need a fixed shape.
            None allows any `[batch, length]`.
        int8: Whether matrix products are computed in int8. Vectors change.
    """
    folder = model_folder(name_or_folder)
    loaded = _loaded(folder)  # also loads the ops that the converter meets
    with tempfile.TemporaryDirectory(prefix="use_st5_") as scratch:
        if length is not None:
            root = tf.Module()
            root.loaded, root.network = loaded, _network(loaded, length)
            folder = Path(scratch, "fixed")
            tf.saved_model.save(root, os.fspath(folder), signatures={"ids": root.network})
        converter = tf.lite.TFLiteConverter.from_saved_model(
            os.fspath(folder), signature_keys=["ids"]
        )
        if int8:
            converter.optimizations = [tf.lite.Optimize.DEFAULT]
        with atomic_path(path) as temporary:
            temporary.write_bytes(converter.convert())


def _network(loaded: Any, length: int | None) -> Any:
    """The signature `ids` for ids of one shape."""
    ids = tf.TensorSpec([None, None] if length is None else [1, length], tf.int32, name="ids")
    return tf.function(lambda ids: loaded.signatures["ids"](ids=ids), input_signature=[ids])


def _int8_onnx(content: bytes) -> bytes:
    """A graph with matrix products in int8 (dynamic quantization): activations with one scale."""
    quantization = require("onnxruntime.quantization", "onnx")
    level = logging.root.manager.disable
    logging.disable(max(level, logging.WARNING))  # ONNX Runtime recommends its own scripts.
    try:
        with tempfile.TemporaryDirectory(prefix="use_st5_") as scratch:
            source, target = Path(scratch, "float32.onnx"), Path(scratch, "int8.onnx")
            source.write_bytes(content)
            quantization.quantize_dynamic(
                os.fspath(source),
                os.fspath(target),
                op_types_to_quantize=["MatMul"],
                per_channel=True,
                reduce_range=True,
                weight_type=quantization.QuantType.QInt8,
                # After ONNX Runtime's own operators, its shape inference does not know the types.
                extra_options={"DefaultTensorType": 1, "MatMulConstBOnly": True},  # float
            )
            return target.read_bytes()
    finally:
        logging.disable(level)


def _loaded(folder: Path) -> Any:
    """The SavedModel, which must have the signature `ids` and fit into one file."""
    loaded = load_saved_model(folder)
    if "ids" not in loaded.signatures:
        raise ValueError(f"{folder}: is no SavedModel of use_st5: it lacks the signature 'ids'.")
    size = sum(v.shape.num_elements() * v.dtype.size for v in loaded.variables)
    if size >= _LARGEST:
        most = f"one file holds less than {_LARGEST:,}"
        raise ValueError(f'{folder}: {size:,} bytes, but {most}. Try one with precision="int8".')
    return loaded
