"""Writes graphs with matrix products in int8, and compares their vectors with float32."""

from __future__ import annotations

import contextlib
import itertools
import json
import logging
import os
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np

from use_st5._imports import require
from use_st5._model_manifest import ModelManifest
from use_st5._vectors import cosine
from use_st5.engines.int8_rows import Arrays, round_rows

LEAST_COSINE = 0.999
# For `round_products`, whose vectors depend on the other texts of a batch, and `round_rows`, which
# is calibrated on these sentences: others have lower cosines. The lowest cosine of use_dan_en with
# VNNI is 0.9996 here and 0.9993 on 10,000 others; without VNNI, that of use_transformer_en by
# `round_products` is 0.9994 here and 0.9981 on 2,000 others.
_SAFE_COSINE = 0.9995
# The number of a matrix's inputs that share a scale. On 10,000 sentences the lowest cosine of
# all-MiniLM-L6-v2 is 0.9991; with 32 inputs it is 0.998.
BLOCK = 16
# How many of a network's first products lose too much with one scale for all activations: with
# VNNI, and without it.
_EXACT_FIRST = {"use_dan": (2, 3)}
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


def calibration_texts() -> list[str]:
    """The texts that `round_rows` is calibrated on: `sentences`, the minimal pairs, and words.

    In a text of one word each number has more influence than in a long text.
    """
    path = Path(__file__).parents[1] / "evaluation" / "minimal_pairs.json"
    groups = json.loads(path.read_text(encoding="utf-8"))
    texts = [*sentences(), *(text for each in groups.values() for texts in each for text in texts)]
    words = dict.fromkeys(word.strip(".,!?") for text in texts for word in text.split())
    marks = itertools.cycle(("", ".", " !", "?"))
    return [*texts, *map("".join, zip(words, marks, strict=False))]


def write_int8_model(
    source: Path,
    path: Path,
    manifest: ModelManifest,
    run: Callable[[Path, list[str]], np.ndarray],
    given: Callable[[Path, list[str]], list[Arrays]],
) -> None:
    """Writes a graph whose weights and activations are int8 in matrix products.

    Uses the fastest of three methods that keeps the vectors: `round_products`, `round_rows`, or
    `round_blocks`.

    Args:
        source: The graph in float32.
        path: The file to write.
        manifest: The content of the model's `use_st5.json`.
        run: A graph and texts → their vectors `[texts, dimension]`.
        given: A graph and texts → the arrays that the graph's inputs get, for each batch.

    Raises:
        ImportError: The package onnx is missing.
        ValueError: With every method, the cosine between the vectors and those of float32 is below
            0.999 (`round_blocks`) or 0.9995 (the others) for one of the `sentences`.
    """
    texts = sentences()
    exact = run(source, texts)
    vnni = has_vnni()
    first_with, first_without = _EXACT_FIRST.get(manifest.family or "", (0, 0))

    def products(made: Path) -> None:
        round_products(source, made, vnni=vnni, first=first_with if vnni else first_without)

    def rows(made: Path) -> None:
        batches = given(source, calibration_texts())
        round_rows(source, made, batches, vnni=vnni)

    blocks = partial(round_blocks, source)
    methods = (products, _SAFE_COSINE), (rows, _SAFE_COSINE), (blocks, LEAST_COSINE)
    with tempfile.TemporaryDirectory(prefix="use_st5_") as scratch:
        made = Path(scratch, "int8.onnx")
        for write, limit in methods:
            write(made)
            least = float(cosine(exact, run(made, texts)).min())
            if least >= limit:
                path.write_bytes(made.read_bytes())
                return
    raise ValueError(
        f"{manifest.name}: expected a cosine of {LEAST_COSINE} or more between the vectors of int8 "
        f"and of float32, found {least:.4f} among {len(texts)} sentences. Load the model with "
        "backend='onnx'."
    )


def round_products(source: Path, path: Path, *, vnni: bool, first: int = 0) -> None:
    """Writes a graph with matrix products in int8 (dynamic quantization).

    Weights are rounded with a scale for each output, activations with one scale for each product of
    a call. Processors without VNNI add products in 16 bits, which overflow; for them, weights have
    7 bits.

    Args:
        source: The graph in float32.
        path: The file to write.
        vnni: Whether the processor has VNNI.
        first: How many of the graph's first products are rounded by `round_blocks` instead. Without
            VNNI, for which blocks take twice the time of float32, they stay in float32.

    Raises:
        ImportError: The package onnx is missing.
    """
    quantization = require("onnxruntime.quantization", "onnx")
    excluded_names: list[str] = []
    if first:
        nodes = require("onnx", "onnx").load(os.fspath(source)).graph.node
        excluded_names = [each.name for each in nodes if each.op_type == "MatMul"][:first]
    with _without_advice():
        quantization.quantize_dynamic(
            os.fspath(source),
            os.fspath(path),
            op_types_to_quantize=["MatMul"],
            nodes_to_exclude=excluded_names,
            per_channel=True,
            reduce_range=not vnni,
            weight_type=quantization.QuantType.QInt8,
            # After ONNX Runtime's own operators, its shape inference does not know the types.
            extra_options={"DefaultTensorType": 1, "MatMulConstBOnly": True},  # float
        )
    if excluded_names and vnni:
        round_blocks(path, path)


def round_blocks(source: Path, path: Path) -> None:
    """Writes a graph with matrix products in int8, with a scale for each 16 inputs.

    A token with large numbers, or a number that is large in all tokens, changes only the scale of
    its block. So vectors stay closer to float32 and do not depend on the batch, but a product takes
    longer than with `round_products`.

    Args:
        source: The graph in float32.
        path: The file to write.

    Raises:
        ImportError: The package onnx is missing.
    """
    onnx = require("onnx", "onnx")
    model = onnx.load(os.fspath(source))
    graph = model.graph
    weights = {each.name: each for each in graph.initializer}
    products = [
        each for each in graph.node if each.op_type == "MatMul" and each.input[1] in weights
    ]
    for name in {each.input[1] for each in products}:
        codes, scales = block_codes(onnx.numpy_helper.to_array(weights[name]))
        graph.initializer.remove(weights[name])
        for suffix, array in (("codes", codes), ("scales", scales)):
            graph.initializer.append(onnx.numpy_helper.from_array(array, f"{name}_{suffix}"))
    for node in products:
        inputs, outputs = weights[node.input[1]].dims
        numbers = {"K": inputs, "N": outputs, "bits": 8, "block_size": BLOCK}
        level = {"accuracy_level": 4}  # Activations are rounded to int8, too.
        node.input[1:] = [f"{node.input[1]}_codes", f"{node.input[1]}_scales"]
        node.op_type, node.domain = "MatMulNBits", "com.microsoft"
        node.attribute.extend(
            onnx.helper.make_attribute(key, value) for key, value in {**numbers, **level}.items()
        )
    path.write_bytes(model.SerializeToString())


def block_codes(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The codes of a matrix with a scale for each 16 inputs, as MatMulNBits reads them.

    Args:
        matrix: float32 `[inputs, outputs]`.

    Returns:
        Codes uint8 `[outputs, blocks, 16]`, in which 128 stands for 0, and scales float32
        `[outputs, blocks]`.
    """
    inputs, outputs = matrix.shape
    blocks = np.pad(matrix.T, ((0, 0), (0, -inputs % BLOCK))).reshape(outputs, -1, BLOCK)
    largest = np.abs(blocks).max(axis=2)
    scales = np.where(largest > 0, largest / 127, 1.0).astype(np.float32)
    return (np.rint(blocks / scales[:, :, None]) + 128).astype(np.uint8), scales


@contextlib.contextmanager
def _without_advice() -> Iterator[None]:
    """Drops the warnings in which ONNX Runtime recommends its own scripts."""
    level = logging.root.manager.disable
    logging.disable(max(level, logging.WARNING))
    try:
        yield
    finally:
        logging.disable(level)


def has_vnni() -> bool:
    """Whether the processor adds products of int8 in 32 bits; False if that is not known."""
    try:
        content = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return False
    flags = next((line for line in content.splitlines() if line.startswith("flags")), "").split()
    return bool({"avx512_vnni", "avx_vnni"} & {*flags})
