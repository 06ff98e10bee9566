"""Writes graphs with matrix products in int8, and compares their vectors with float32."""

from __future__ import annotations

import itertools
import json
import os
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from use_st5._imports import require
from use_st5.engines.engine import GraphEngine
from use_st5.engines.int8_rows import (
    Arrays,
    largest_inputs,
    named_node,
    replace_products,
    round_rows,
    weight_products,
)

LEAST_COSINE = 0.999
# For `round_products` and `round_rows`, which are calibrated on these sentences: others have lower
# cosines.
_SAFE_COSINE = 0.9995
# The number of a matrix's inputs that share a scale. On 10,000 sentences the lowest cosine of
# all-MiniLM-L6-v2 is 0.9991; with 32 inputs it is 0.998.
BLOCK = 16
# The operators that give rows of a similar size. One scale serves their outputs: it is a quarter
# larger than a fourth of the calibration texts needs.
_NORMS = ("LayerNormalization", "SimplifiedLayerNormalization", "SkipSimplifiedLayerNormalization")
_MARGIN, _SHARE = 1.25, 4
_WORDS = 1_600  # each of which is a calibration text
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
    """The texts that products are calibrated on: `sentences`, those of a file, and 1,600 words.

    No text of the file is in an evaluation set. In a text of one word each number has more
    influence than in a long text.
    """
    path = Path(__file__).with_name("calibration_texts.json")
    sources = json.loads(path.read_text(encoding="utf-8"))
    texts = [*sentences(), *(text for source in sources for text in source["texts"])]
    words = [*dict.fromkeys(word.strip(".,!?") for text in texts for word in text.split())]
    marks = itertools.cycle(("", ".", " !", "?"))
    return [*texts, *map("".join, zip(words[:_WORDS], marks, strict=False))]


def write_int8_model(
    source: Path,
    path: Path,
    name: str,
    engine: Callable[[Path], GraphEngine],
    exact_first: tuple[int, int],
) -> None:
    """Writes a graph whose weights and activations are int8 in matrix products.

    Uses the fastest of three methods that keeps the vectors: `round_products`, `round_rows`, or
    `round_blocks`.

    Args:
        source: The graph in float32.
        path: The file to write.
        name: The model's name, for messages.
        engine: The file of a graph → the engine that runs it.
        exact_first: As in `FamilyEngine`.
    """
    texts = sentences()
    exact_engine = engine(source)
    exact = _vectors(exact_engine, texts)
    batches: list[Arrays] = []
    exact_engine.session.on_run = batches.append
    _vectors(exact_engine, calibration_texts())
    vnni = has_vnni()
    first = exact_first[0] if vnni else exact_first[1]
    methods: list[tuple[Callable[[Path], None], float]] = [
        (lambda made: round_products(source, made, batches, vnni=vnni, first=first), _SAFE_COSINE),
        (lambda made: round_rows(source, made, batches, vnni=vnni), _SAFE_COSINE),
        (lambda made: round_blocks(source, made), LEAST_COSINE),
    ]
    with tempfile.TemporaryDirectory(prefix="use_st5_") as scratch:
        made = Path(scratch, "int8.onnx")
        for write, limit in methods:
            write(made)
            least = lowest_cosine(exact, _vectors(engine(made), texts))
            if least >= limit:
                path.write_bytes(made.read_bytes())
                return
    raise ValueError(
        f"{name}: expected a cosine of {LEAST_COSINE} or more between the vectors of int8 "
        f"and of float32, found {least:.4f} among {len(texts)} sentences. Load the model with "
        "backend='onnx'."
    )


def _vectors(engine: GraphEngine, texts: list[str]) -> np.ndarray:
    return np.concatenate([engine.run(texts[at : at + 64]) for at in range(0, len(texts), 64)])


def lowest_cosine(first: np.ndarray, second: np.ndarray) -> float:
    """The lowest cosine of matching rows of two arrays `[n, dim]`; that of a zero row is 0."""
    first, second = first.astype(np.float64), second.astype(np.float64)
    lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    return float(((first * second).sum(axis=1) / np.maximum(lengths, 1e-30)).min())


def round_products(
    source: Path, path: Path, batches: list[Arrays], *, vnni: bool, first: int = 0
) -> None:
    """Writes a graph with matrix products in int8.

    Weights are rounded with a scale for each output. The outputs of a layer norm, whose rows are
    alike in size, have one scale, found on some texts; other inputs have a scale for each row. So a
    vector does not depend on its batch. Processors without VNNI add products in 16 bits, which
    overflow; for them, weights have 7 bits.

    Args:
        source: The graph in float32.
        path: The file to write.
        batches: The arrays that the graph's inputs get, for batches of some texts.
        vnni: Whether the processor has VNNI.
        first: How many of the graph's first products are rounded by `round_blocks` instead. Without
            VNNI, for which blocks take twice the time of float32, they stay in float32.
    """
    onnx = require("onnx", "onnx")
    model = onnx.load(os.fspath(source))
    kinds = {name: node.op_type for node in model.graph.node for name in node.output}
    weights = {each.name: each for each in model.graph.initializer}
    products = weight_products(model.graph)[first:]
    normed = [
        x for x in dict.fromkeys(each.input[0] for each in products) if kinds.get(x) in _NORMS
    ]
    largest = largest_inputs(model, normed, batches[::_SHARE]) if normed else {}
    replacements: dict[str, list[Any]] = {}
    arrays: Arrays = {}
    for node in products:
        matrix = onnx.numpy_helper.to_array(weights[node.input[1]])
        x, y = node.input[0], node.output[0]
        fixed = _MARGIN * largest[x] if x in largest else None
        replacements[y], product_arrays = _product(
            x,
            y,
            matrix,
            positive=kinds.get(x) == "Relu",
            fixed=fixed,
            largest_code=127 if vnni else 63,
        )
        arrays |= product_arrays
    replace_products(model.graph, replacements, arrays)
    path.write_bytes(model.SerializeToString())
    if first and vnni:
        round_blocks(path, path)


def _product(
    x: str, y: str, matrix: np.ndarray, *, positive: bool, fixed: float | None, largest_code: int
) -> tuple[list[Any], Arrays]:
    """The nodes for the product `y` of `x` and a matrix, and their arrays by name."""
    sizes = np.abs(matrix).max(axis=0)
    scales = np.where(sizes > 0, sizes / largest_code, 1.0).astype(np.float32)
    zero = 0 if positive else 128
    arrays: Arrays = {
        **{"codes": np.rint(matrix / scales).astype(np.int8), "scales": scales},
        "step": np.array((fixed or 1.0) / (255 - zero), np.float32),
        **{"zero": np.array(zero, np.uint8), "least": np.array(1e-30, np.float32)},
    }
    node = partial(named_node, x, y)
    product = "rounded codes step scales zero"
    if fixed is not None:
        nodes = [
            node("QuantizeLinear", f"{x} step zero", "rounded"),
            node("MatMulIntegerToFloat", product, "", domain="com.microsoft"),
        ]
    else:
        nodes = [
            *([] if positive else [node("Abs", x, "sizes")]),
            node("ReduceMax", x if positive else "sizes", "largest", axes=[1], keepdims=1),
            node("Max", "largest least", "row_sizes"),
            node("Div", f"{x} row_sizes", "row_shares"),
            node("QuantizeLinear", "row_shares step zero", "rounded"),
            node("MatMulIntegerToFloat", product, "sums", domain="com.microsoft"),
            node("Mul", "sums row_sizes", ""),
        ]
    used = {name for each in nodes for name in each.input}
    return nodes, {f"{y}_{n}": array for n, array in arrays.items() if f"{y}_{n}" in used}


def round_blocks(source: Path, path: Path) -> None:
    """Writes a graph with matrix products in int8, with a scale for each 16 inputs.

    A token with large numbers, or a number that is large in all tokens, changes only the scale of
    its block. So vectors stay closer to float32 and do not depend on the batch, but a product takes
    longer than with `round_products`.
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


def has_vnni() -> bool:
    """Whether the processor adds products of int8 in 32 bits; False if that is not known."""
    try:
        content = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return False
    flags = next((line for line in content.splitlines() if line.startswith("flags")), "").split()
    return bool({"avx512_vnni", "avx_vnni"} & {*flags})
