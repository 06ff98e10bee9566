"""The graph of a Transformer with matrix products in int8, measured against float32."""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from use_st5._imports import require
from use_st5._model_manifest import ModelManifest
from use_st5._vectors import cosine
from use_st5.engines.transformer import TransformerEngine

LEAST_COSINE = 0.999
_SUBJECTS = (
    *("A man", "The old woman in the red coat", "Nobody", "My brother's dog", "Dr. Smith"),
    *("The government of Canada", "A group of 12 students", "It", "Every second engineer"),
)
_VERBS = (
    *("is playing", "did not find", "wrote about", "wants to sell", "has never seen"),
    *("will probably need", "complained about", "is carefully watching"),
)
_OBJECTS = (
    *("a guitar.", "the train to Berlin, which was late.", "anything!", "3,000 shares."),
    *("the results of the study (see below).", "how old you are?", "water"),
)


def sentences() -> list[str]:
    """The 504 sentences on which int8 is measured: short and long, with numbers and punctuation."""
    return [" ".join(each) for each in itertools.product(_SUBJECTS, _VERBS, _OBJECTS)]


def write_int8_model(source: Path, folder: Path, manifest: ModelManifest, path: Path) -> None:
    """Writes a graph whose weights and activations are int8 in matrix products.

    Dynamic quantization: weights are rounded with a scale for each output, activations with one
    scale for each product of a call. Processors without VNNI add products in 16 bits, which
    overflow: there weights have 7 bits.

    Args:
        source: The graph in float32.
        folder: The folder of the SavedModel.
        manifest: What its `use_st5.json` says.
        path: The file to write.

    Raises:
        ImportError: The package onnx is missing.
        ValueError: The cosine between the vectors and those of float32 is below 0.999 for one of
            the `sentences`.
    """
    with tempfile.TemporaryDirectory(prefix="use_st5_") as scratch:
        made = Path(scratch, "int8.onnx")
        round_products(source, made, reduce_range=not has_vnni())
        texts = sentences()
        exact, rounded = (
            np.concatenate([engine.run(texts[at : at + 64]) for at in range(0, len(texts), 64)])
            for engine in (TransformerEngine(each, folder, manifest) for each in (source, made))
        )
        least = float(cosine(exact, rounded).min())
        if not least >= LEAST_COSINE:
            raise ValueError(
                f"{folder}: expected a cosine of {LEAST_COSINE} or more between the vectors of "
                f"int8 and of float32, found {least:.4f} among {len(texts)} sentences. Load the "
                "model with backend='onnx'."
            )
        path.write_bytes(made.read_bytes())


def round_products(source: Path, path: Path, *, reduce_range: bool) -> None:
    """Writes a graph with matrix products in int8 (dynamic quantization).

    Args:
        source: The graph in float32.
        path: The file to write.
        reduce_range: Whether weights have 7 bits, for processors without VNNI.

    Raises:
        ImportError: The package onnx is missing.
    """
    quantization = require("onnxruntime.quantization", "onnx")
    with _without_advice():
        quantization.quantize_dynamic(
            os.fspath(source),
            os.fspath(path),
            op_types_to_quantize=["MatMul"],
            per_channel=True,
            reduce_range=reduce_range,
            weight_type=quantization.QuantType.QInt8,
            # Behind operators of ONNX Runtime its shape inference knows no types.
            extra_options={"DefaultTensorType": 1, "MatMulConstBOnly": True},  # float
        )


@contextlib.contextmanager
def _without_advice() -> Iterator[None]:
    """Drops the warnings in which ONNX Runtime recommends its own scripts."""
    before = logging.root.manager.disable
    logging.disable(max(before, logging.WARNING))
    try:
        yield
    finally:
        logging.disable(before)


def has_vnni() -> bool:
    """Whether the processor adds products of int8 in 32 bits; False where that is not known."""
    try:
        content = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return False
    flags = next((line for line in content.splitlines() if line.startswith("flags")), "").split()
    return bool({"avx512_vnni", "avx_vnni"} & {*flags})
