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

Arrays = dict[str, np.ndarray]
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
    `round_blocks`. `engine` opens the file of a graph, `exact_first` is that of `FamilyEngine`.
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
    found = f"the cosine to float32 is {least:.4f}, not {LEAST_COSINE} or more"
    raise ValueError(f"{name}: in int8 {found}. Load the model with backend='onnx'.")


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
    overflow; for them, weights have 7 bits. The `first` products of the graph are rounded by
    `round_blocks` instead; without VNNI, where blocks take twice the time of float32, they stay.
    """
    onnx = require("onnx", "onnx")
    model = onnx.load(os.fspath(source))
    kinds = {name: node.op_type for node in model.graph.node for name in node.output}
    products = weight_products(model.graph)[first:]
    inputs = dict.fromkeys(node.input[0] for node, _ in products)
    normed = [x for x in inputs if kinds.get(x) in _NORMS]
    observed = _observed(model, normed, batches[::_SHARE]) if normed else {}
    replacements: dict[str, list[Any]] = {}
    arrays: Arrays = {}
    for node, matrix in products:
        x, y = node.input[0], node.output[0]
        fixed = _MARGIN * float(observed[x][0].max()) if x in observed else None
        replacements[y], product_arrays = _product(
            x,
            y,
            matrix,
            positive=kinds.get(x) == "Relu",
            fixed=fixed,
            largest_code=127 if vnni else 63,
        )
        arrays |= product_arrays
    _write_replaced(model, replacements, arrays, path)
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
            node("MatMulIntegerToFloat", product, "", domain=_DOMAIN),
        ]
    else:
        nodes = [
            *([] if positive else [node("Abs", x, "sizes")]),
            node("ReduceMax", x if positive else "sizes", "largest", axes=[1], keepdims=1),
            node("Max", "largest least", "row_sizes"),
            node("Div", f"{x} row_sizes", "row_shares"),
            node("QuantizeLinear", "row_shares step zero", "rounded"),
            node("MatMulIntegerToFloat", product, "sums", domain=_DOMAIN),
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
    products = weight_products(graph)
    for name, matrix in {node.input[1]: matrix for node, matrix in products}.items():
        codes, scales = block_codes(matrix)
        graph.initializer.remove(weights[name])
        for suffix, array in (("codes", codes), ("scales", scales)):
            graph.initializer.append(onnx.numpy_helper.from_array(array, f"{name}_{suffix}"))
    for node, matrix in products:
        inputs, outputs = matrix.shape
        numbers = {"K": inputs, "N": outputs, "bits": 8, "block_size": BLOCK}
        level = {"accuracy_level": 4}  # Activations are rounded to int8, too.
        node.input[1:] = [f"{node.input[1]}_codes", f"{node.input[1]}_scales"]
        node.op_type, node.domain = "MatMulNBits", _DOMAIN
        node.attribute.extend(
            onnx.helper.make_attribute(key, value) for key, value in {**numbers, **level}.items()
        )
    path.write_bytes(model.SerializeToString())


def block_codes(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The codes of a matrix with a scale for each 16 inputs, as MatMulNBits reads them.

    Codes are uint8 `[outputs, blocks, 16]`, in which 128 stands for 0, scales `[outputs, blocks]`.
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


# `round_rows`: a scale for each row, and large inputs kept apart.
# The most inputs of a product that stay in float32: those with the largest numbers. With them, the
# lowest cosine of all-MiniLM-L6-v2 is 0.9990 on 10,000 sentences; without them, it was 0.995 on the
# hardest sentences. 32 such inputs cost a tenth of the speed.
_OUTLIERS = 16
# As in GPTQ: the damping, a share of the diagonal's mean, and the number of rows whose errors are
# passed on together.
_DAMPING, _ROWS = 0.01, 128
_DOMAIN = "com.microsoft"
# The code of 0 if inputs have both signs, and if no input is far below 0, as after GELU.
_MIDDLE, _LOW = 128, 16
_LOWEST = 1 / 8  # of the largest input
# The largest code of a weight, and the largest sum of two codes whose products with inputs below
# 256 can be added in 16 bits.
_LARGEST_CODE, _LARGEST_SUM = 127, 128
_SMALLEST = 1e-5  # An input that was 0 in all texts counts as this large.
# The arrays that all products share.
_SHARED: Arrays = {"int8_one": np.array(1.0, np.float32), "int8_columns": np.array([1])}


def round_rows(source: Path, path: Path, batches: list[Arrays], *, vnni: bool) -> None:
    """Writes a graph with matrix products in int8.

    Weights have a scale for each output, and inputs one for each row, so a vector does not depend
    on its batch. The inputs of a product are observed on some texts, for three purposes: inputs
    with the largest numbers stay in float32 (LLM.int8(), arXiv 2208.07339), the others are divided
    by the root of their largest number (as in SmoothQuant, arXiv 2211.10438), and rows of the
    matrix compensate the errors of the rows that were rounded before them (GPTQ, arXiv 2210.17323).
    The last product of a gated feed-forward layer stays in float32. Processors without VNNI add the
    products of two neighbouring inputs in 16 bits; for them, the sum of two neighbouring codes is
    at most 128, so that nothing overflows.
    """
    onnx = require("onnx", "onnx")
    model = onnx.load(os.fspath(source))
    products = weight_products(model.graph)
    inputs = [*dict.fromkeys(node.input[0] for node, _ in products)]
    statistics = _observed(model, inputs, batches)
    replacements: dict[str, list[Any]] = {}
    arrays = dict(_SHARED)
    for node, matrix in products:
        x, y = node.input[0], node.output[0]
        # The last product of a gated feed-forward layer, which int8 would harm, stays exact.
        largest, _, least = statistics[x]
        if matrix.shape[1] < matrix.shape[0] and -least > _LOWEST * float(largest.max()):
            continue
        replacements[y], product_arrays = _rounded_product(x, y, matrix, statistics[x], vnni)
        arrays |= product_arrays
    _write_replaced(model, replacements, arrays, path)


def weight_products(graph: Any) -> list[tuple[Any, np.ndarray]]:
    """The nodes of a graph that multiply by weights, in their order, and these weights."""
    to_array = require("onnx", "onnx").numpy_helper.to_array
    weights = {each.name: each for each in graph.initializer}
    return [
        (node, to_array(weights[node.input[1]]))
        for node in graph.node
        if node.op_type == "MatMul" and node.input[1] in weights
    ]


def _write_replaced(
    model: Any, replacements: dict[str, list[Any]], arrays: Arrays, path: Path
) -> None:
    """Writes a graph with other nodes for some outputs, and more arrays; drops unused arrays."""
    onnx, graph = require("onnx", "onnx"), model.graph
    nodes = [new for node in graph.node for new in replacements.get(node.output[0], [node])]
    used_names = {name for node in nodes for name in node.input}
    initializers = [each for each in graph.initializer if each.name in used_names]
    initializers += [onnx.numpy_helper.from_array(array, name) for name, array in arrays.items()]
    for field, values in ((graph.node, nodes), (graph.initializer, initializers)):
        del field[:]
        field.extend(values)
    path.write_bytes(model.SerializeToString())


# Of the observed inputs `[rows, inputs]` of a product: the largest absolute value of each input,
# `[inputs]`; the sums of the products of each pair of inputs, float32 `[inputs, inputs]`; and the
# smallest number.
Statistics = tuple[np.ndarray, np.ndarray, float]


def _observed(model: Any, names: list[str], batches: list[Arrays]) -> dict[str, Statistics]:
    """Runs a graph on batches; returns the statistics of the named values."""
    onnx, runtime = require("onnx", "onnx"), require("onnxruntime", "onnx")
    observed_model = onnx.ModelProto.FromString(model.SerializeToString())
    observed_model.graph.output.extend(
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in names
    )
    options = runtime.SessionOptions()
    options.log_severity_level = 3
    session = runtime.InferenceSession(
        observed_model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    statistics: dict[str, Statistics] = {}
    for batch in batches:
        for name, x in zip(names, session.run(names, batch), strict=True):
            largest, products, least = np.abs(x).max(axis=0), x.T @ x, float(x.min())
            if name in statistics:
                np.maximum(largest, statistics[name][0], out=largest)
                products += statistics[name][1]
                least = min(least, statistics[name][2])
            statistics[name] = largest, products, least
    return statistics


def _rounded_product(
    x: str, y: str, matrix: np.ndarray, seen: Statistics, vnni: bool
) -> tuple[list[Any], Arrays]:
    """The nodes for the product `y` of `x` and a matrix, and their arrays by name."""
    largest, products, least = seen
    order = np.argsort(-largest, kind="stable")
    outliers = min(_OUTLIERS, len(matrix) // 4)
    outlier_rows, inlier_rows = np.sort(order[:outliers]), np.sort(order[outliers:])
    low = -least <= _LOWEST * largest[inlier_rows].max()
    zero = _LOW if low else _MIDDLE
    # A row has only one scale, which is more exact for inputs of similar size.
    divisors = (
        np.ones(len(inlier_rows)) if low else np.sqrt(np.maximum(largest[inlier_rows], _SMALLEST))
    )
    codes = np.zeros(matrix.shape, np.int8)
    products = products[np.ix_(inlier_rows, inlier_rows)] / np.outer(divisors, divisors)
    codes[inlier_rows], scales = compensated_codes(
        matrix[inlier_rows] * divisors[:, None],
        products,
        neighbours=None if vnni else _neighbours(inlier_rows),
    )
    mask = np.zeros(len(matrix), np.float32)
    mask[inlier_rows] = 1 / divisors
    arrays: Arrays = {
        **{"mask": mask, "codes": codes, "scales": scales},
        **{"places": outlier_rows, "exact": matrix[outlier_rows], "zero": np.array(zero, np.uint8)},
        "step": np.array(1 / (255 - zero), np.float32),
        # The smallest scale: with it, the smallest observed input has the code 0.
        "least": np.array(max(-least / zero if low else 0.0, 1e-30), np.float32),
    }

    node = partial(named_node, x, y)
    nodes = [
        node("Mul", f"{x} mask", "rest"),
        *([] if low else [node("Abs", "rest", "sizes")]),
        node("ReduceMax", "rest" if low else "sizes", "largest", axes=[1], keepdims=0),
        node("Mul", "largest step", "steps"),
        node("Max", "steps least", "row_scales"),
        node("Shape", "row_scales", "rows"),
        node("Expand", "zero rows", "zeros"),
        node("QuantizeLinear", "rest row_scales zeros", "rounded", axis=0),
        node("MatMulIntegerToFloat", "rounded codes int8_one scales zero", "sums", domain=_DOMAIN),
        node("Unsqueeze", "row_scales int8_columns", "column"),
        node("Mul", "sums column", "most"),
        node("Gather", f"{x} places", "apart", axis=1),
        node("Gemm", "apart exact most", ""),
    ]
    return nodes, {f"{y}_{name}": array for name, array in arrays.items()}


def named_node(x: str, y: str, kind: str, inputs: str, output: str, **attributes: Any) -> Any:
    """A node for the product `y` of `x`; other names begin with `y`, except of shared arrays."""
    names = [n if n == x or n in _SHARED else f"{y}_{n}" for n in inputs.split()]
    make_node = require("onnx", "onnx").helper.make_node
    return make_node(kind, names, [f"{y}_{output}" if output else y], **attributes)


def _neighbours(rows: np.ndarray) -> np.ndarray:
    """The place in `rows` of each row's neighbour, −1 for none: 0 and 1 are such, and 2 and 3."""
    places = {int(row): place for place, row in enumerate(rows)}
    return np.array([places.get(int(row) ^ 1, -1) for row in rows])


def compensated_codes(
    matrix: np.ndarray, products: np.ndarray, neighbours: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Rounds a matrix row by row; the following rows compensate the error of each row (GPTQ).

    `products` are the sums of the products of each pair of inputs, `[inputs, inputs]`. Codes of a
    row and of its neighbour (−1: none) have a sum from −128 to 128; None: sums may be larger.
    """
    if neighbours is None:
        neighbours = np.full(len(matrix), -1)
    # The last row, of zeros, is the neighbour of the rows without one.
    sums = matrix + np.append(matrix, np.zeros_like(matrix[:1]), axis=0)[neighbours]
    scales = np.maximum(np.abs(matrix).max(axis=0), np.abs(sums).max(axis=0)) / _LARGEST_CODE
    scales = np.where(scales > 0, scales, 1.0).astype(np.float32)
    order = np.argsort(-np.diag(products), kind="stable")
    rows = matrix[order].astype(np.float64)
    hessian = products[np.ix_(order, order)].astype(np.float64)
    hessian[np.diag_indices_from(hessian)] += _DAMPING * np.diag(hessian).mean() + 1e-12
    upper = np.linalg.cholesky(np.linalg.inv(hessian)).T
    codes = np.zeros((len(matrix) + 1, matrix.shape[1]), np.int16)
    for start in range(0, len(rows), _ROWS):
        end = min(start + _ROWS, len(rows))
        errors = np.empty((end - start, rows.shape[1]))
        for row in range(start, end):
            other = codes[neighbours[order[row]]]  # 0 if that row is rounded later
            lowest = np.maximum(-_LARGEST_CODE, -_LARGEST_SUM - other)
            highest = np.minimum(_LARGEST_CODE, _LARGEST_SUM - other)
            rounded = np.clip(np.rint(rows[row] / scales), lowest, highest)
            codes[order[row]] = rounded
            error = (rows[row] - rounded * scales) / upper[row, row]
            rows[row + 1 : end] -= np.outer(upper[row, row + 1 : end], error)
            errors[row - start] = error
        rows[end:] -= upper[start:end, end:].T @ errors
    return codes[:-1].astype(np.int8), scales
