"""Matrix products in int8, close to float32: a scale for each row, and large inputs kept apart."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from use_st5._imports import require

Arrays = dict[str, np.ndarray]
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
_LARGEST, _LARGEST_SUM = 127, 128
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
    The last product of a gated feed-forward layer stays in float32.

    Args:
        source: The graph in float32.
        path: The file to write.
        batches: The arrays that the graph's inputs get, for batches of some texts.
        vnni: Whether the processor has VNNI. Others add the products of two neighbouring inputs in
            16 bits; for them, the sum of two neighbouring codes is at most 128, so that nothing
            overflows.
    """
    onnx = require("onnx", "onnx")
    model = onnx.load(os.fspath(source))
    graph = model.graph
    weights = {each.name: each for each in graph.initializer}
    products = weight_products(graph)
    statistics = _observed(model, [*dict.fromkeys(each.input[0] for each in products)], batches)
    replacements: dict[str, list[Any]] = {}
    arrays = dict(_SHARED)
    for node in products:
        matrix = onnx.numpy_helper.to_array(weights[node.input[1]])
        x, y = node.input[0], node.output[0]
        if _stays_exact(matrix, statistics[x]):
            continue
        replacements[y], product_arrays = _rounded_product(x, y, matrix, statistics[x], vnni)
        arrays |= product_arrays
    replace_products(graph, replacements, arrays)
    path.write_bytes(model.SerializeToString())


def weight_products(graph: Any) -> list[Any]:
    """The nodes of a graph that multiply by weights, in their order."""
    weights = {each.name for each in graph.initializer}
    return [node for node in graph.node if node.op_type == "MatMul" and node.input[1] in weights]


def replace_products(graph: Any, replacements: dict[str, list[Any]], arrays: Arrays) -> None:
    """Replaces the nodes of some outputs, adds arrays, and removes the arrays that nobody uses."""
    onnx = require("onnx", "onnx")
    nodes = [new for node in graph.node for new in replacements.get(node.output[0], [node])]
    used_names = {name for node in nodes for name in node.input}
    initializers = [each for each in graph.initializer if each.name in used_names]
    initializers += [onnx.numpy_helper.from_array(array, name) for name, array in arrays.items()]
    for field, values in ((graph.node, nodes), (graph.initializer, initializers)):
        del field[:]
        field.extend(values)


@dataclass
class Inputs:
    """Statistics of the observed inputs of a product, `[rows, inputs]`.

    Attributes:
        largest: The largest absolute value of each input, `[inputs]`.
        products: The sums of the products of each pair of inputs, float32 `[inputs, inputs]`.
        least: The smallest number.
    """

    largest: np.ndarray
    products: np.ndarray
    least: float


def _observed(model: Any, names: list[str], batches: list[Arrays]) -> dict[str, Inputs]:
    """Runs a graph on batches; returns the statistics of the named values."""
    statistics: dict[str, Inputs] = {}
    for values in _values(model, names, batches):
        for name, x in values.items():
            new = Inputs(np.abs(x).max(axis=0), x.T @ x, float(x.min()))
            if (old := statistics.setdefault(name, new)) is not new:
                np.maximum(old.largest, new.largest, out=old.largest)
                old.products += new.products
                old.least = min(old.least, new.least)
    return statistics


def largest_inputs(model: Any, names: list[str], batches: list[Arrays]) -> dict[str, float]:
    """Runs a graph on batches; returns the largest absolute value of each of the named values."""
    largest = dict.fromkeys(names, 0.0)
    for values in _values(model, names, batches):
        for name, x in values.items():
            largest[name] = max(largest[name], float(np.abs(x).max()))
    return largest


def _values(model: Any, names: list[str], batches: list[Arrays]) -> Iterator[Arrays]:
    """Runs a graph on batches; yields the named values."""
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
    for batch in batches:
        yield dict(zip(names, session.run(names, batch), strict=True))


def _stays_exact(matrix: np.ndarray, seen: Inputs) -> bool:
    """Whether a product has fewer outputs than inputs, and inputs of both signs.

    Such is the last product of a gated feed-forward layer (that of others has the outputs of a GELU
    or ReLU). Its inputs are products of two numbers, and in each row others are the largest. With
    these products in int8, the lowest cosine of st5_mini_en on 10,000 sentences was 0.9986.
    """
    inputs, outputs = matrix.shape
    return outputs < inputs and -seen.least > _LOWEST * float(seen.largest.max())


def _rounded_product(
    x: str, y: str, matrix: np.ndarray, seen: Inputs, vnni: bool
) -> tuple[list[Any], Arrays]:
    """The nodes for the product `y` of `x` and a matrix, and their arrays by name."""
    order = np.argsort(-seen.largest, kind="stable")
    outliers = min(_OUTLIERS, len(matrix) // 4)
    outlier_rows, inlier_rows = np.sort(order[:outliers]), np.sort(order[outliers:])
    low = -seen.least <= _LOWEST * seen.largest[inlier_rows].max()
    zero = _LOW if low else _MIDDLE
    # A row has only one scale, which is more exact for inputs of similar size.
    divisors = (
        np.ones(len(inlier_rows))
        if low
        else np.sqrt(np.maximum(seen.largest[inlier_rows], _SMALLEST))
    )
    codes = np.zeros(matrix.shape, np.int8)
    products = seen.products[np.ix_(inlier_rows, inlier_rows)] / np.outer(divisors, divisors)
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
        "least": np.array(max(-seen.least / zero if low else 0.0, 1e-30), np.float32),
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
    """For each of some rows of a matrix, the place in `rows` of its neighbour; −1 for none.

    Rows 0 and 1 are neighbours, and so are 2 and 3.
    """
    places = {int(row): place for place, row in enumerate(rows)}
    return np.array([places.get(int(row) ^ 1, -1) for row in rows])


def compensated_codes(
    matrix: np.ndarray, products: np.ndarray, neighbours: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Rounds a matrix row by row; the following rows compensate the error of each row (GPTQ).

    Args:
        matrix: `[inputs, outputs]`.
        products: The sums of the products of each pair of inputs, `[inputs, inputs]`.
        neighbours: For each row, the row with which its codes have a sum from −128 to 128, or −1;
            None if sums may be larger.

    Returns:
        Codes int8 `[inputs, outputs]`, and scales float32 `[outputs]`.
    """
    if neighbours is None:
        neighbours = np.full(len(matrix), -1)
    # The last row, of zeros, is the neighbour of the rows without one.
    sums = matrix + np.append(matrix, np.zeros_like(matrix[:1]), axis=0)[neighbours]
    scales = np.maximum(np.abs(matrix).max(axis=0), np.abs(sums).max(axis=0)) / _LARGEST
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
            lowest = np.maximum(-_LARGEST, -_LARGEST_SUM - other)
            highest = np.minimum(_LARGEST, _LARGEST_SUM - other)
            rounded = np.clip(np.rint(rows[row] / scales), lowest, highest)
            codes[order[row]] = rounded
            error = (rows[row] - rounded * scales) / upper[row, row]
            rows[row + 1 : end] -= np.outer(upper[row, row + 1 : end], error)
            errors[row - start] = error
        rows[end:] -= upper[start:end, end:].T @ errors
    return codes[:-1].astype(np.int8), scales
