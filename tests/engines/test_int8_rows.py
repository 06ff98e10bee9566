"""Products in int8 with a scale for each row: by hand, and compared with float32."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from use_st5.engines.int8 import has_vnni
from use_st5.engines.int8_rows import _neighbours, compensated_codes, round_rows

onnx = pytest.importorskip("onnx", reason="the extra `onnx` is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="the extra `onnx` is not installed")

RANDOM = np.random.default_rng(0)
MATRIX = RANDOM.normal(scale=0.36, size=(40, 48)).astype(np.float32)


def write(path: Path, *kinds: str, matrix: np.ndarray = MATRIX) -> Path:
    """Writes a graph that applies operators to `x`, and multiplies the result by a matrix."""
    helper = onnx.helper
    names = ["x", *kinds]
    nodes = [
        helper.make_node(kind, [names[at]], [kind], f"node_{kind}") for at, kind in enumerate(kinds)
    ]
    nodes.append(helper.make_node("MatMul", [names[-1], "w"], ["y"], "product"))
    values = [
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [None, size])
        for name, size in (("x", 40), ("y", matrix.shape[1]))
    ]
    weights = [onnx.numpy_helper.from_array(matrix, "w")]
    graph = helper.make_graph(nodes, "graph", values[:1], values[1:], weights)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), path)
    return path


def inputs(rows: int) -> np.ndarray:
    """Two inputs are much larger than the others, and rows have different sizes."""
    x = RANDOM.normal(size=(rows, 40)) * np.exp(RANDOM.normal(size=(rows, 1)))
    x[:, [3, 30]] *= 100
    return x.astype(np.float32)


def run(path: Path, x: np.ndarray) -> np.ndarray:
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run(["y"], {"x": x})[0]


@pytest.mark.parametrize("vnni", [True, False])
@pytest.mark.parametrize("kinds", [(), ("Relu",)])
def test_near_float32_and_alike_in_every_batch(
    kinds: tuple[str, ...], vnni: bool, tmp_path: Path
) -> None:
    if vnni and not has_vnni():
        pytest.skip("needs a processor with VNNI")
    source, path = write(tmp_path / "source.onnx", *kinds), tmp_path / "int8.onnx"
    round_rows(source, path, [{"x": inputs(300)}, {"x": inputs(200)}], vnni=vnni)
    x = inputs(50)
    found, expected = run(path, x), run(source, x)
    errors = np.linalg.norm(found - expected, axis=1)
    # The sizes without the two large inputs, which stay in float32.
    sizes = np.linalg.norm(np.delete(x, [3, 30], axis=1), axis=1)
    assert (errors < 0.1 * sizes).all()
    assert errors.max() > 0
    alone = np.concatenate([run(path, x[row : row + 1]) for row in range(50)])
    np.testing.assert_allclose(alone, found, atol=1e-4)
    kinds_found = {node.op_type for node in onnx.load(path).graph.node}
    assert "MatMulIntegerToFloat" in kinds_found
    assert "MatMul" not in kinds_found
    assert ("Abs" in kinds_found) == (not kinds), "none of a ReLU's outputs is below 0"


def test_the_last_product_of_a_gated_layer_stays_in_float32(tmp_path: Path) -> None:
    """It has fewer outputs than inputs, and its inputs have both signs."""
    kinds_found = {}
    for kinds in ((), ("Relu",)):
        path = write(tmp_path / "graph.onnx", *kinds, matrix=MATRIX[:, :6])
        round_rows(path, path, [{"x": inputs(300)}], vnni=False)
        kinds_found[kinds] = {node.op_type for node in onnx.load(path).graph.node}
    assert kinds_found[()] == {"MatMul"}
    assert "MatMulIntegerToFloat" in kinds_found["Relu",]


def test_rows_of_zeros_and_larger_numbers_than_were_seen(tmp_path: Path) -> None:
    source, path = write(tmp_path / "source.onnx", "Relu"), tmp_path / "int8.onnx"
    round_rows(source, path, [{"x": inputs(300)}], vnni=False)
    x = np.zeros((2, 40), np.float32)
    x[1] = 1_000.0
    found, expected = run(path, x), run(source, x)
    np.testing.assert_array_equal(found[0], np.zeros(48))
    np.testing.assert_allclose(found[1], expected[1], atol=50)


def test_small_inputs_beside_large_ones_keep_their_digits(tmp_path: Path) -> None:
    """The error is below that of one scale for a row, even if that has exact weights."""
    source, path = write(tmp_path / "source.onnx"), tmp_path / "int8.onnx"
    x = np.random.default_rng(0).uniform(-1, 1, size=(400, 40)).astype(np.float32)
    x *= np.geomspace(1, 1e4, 40, dtype=np.float32)
    round_rows(source, path, [{"x": x}], vnni=False)
    rest = x[:, :30]  # A fourth of the inputs stays in float32.
    steps = np.abs(rest).max(axis=1, keepdims=True) / 127
    errors_of_one_scale = (np.rint(rest / steps) * steps - rest) @ MATRIX[:30]
    errors = run(path, x) - run(source, x)
    assert np.linalg.norm(errors) < 0.8 * np.linalg.norm(errors_of_one_scale)


def test_codes_of_independent_inputs_are_rounded_one_by_one() -> None:
    codes, scales = compensated_codes(MATRIX, np.eye(40, dtype=np.float32))
    np.testing.assert_allclose(scales, np.abs(MATRIX).max(axis=0) / 127, rtol=1e-6)
    np.testing.assert_array_equal(codes, np.rint(MATRIX / scales))


def test_rows_take_up_the_errors_of_those_before_them() -> None:
    """For equal inputs only the sum of the weights counts: 0.3 + 0.3 steps round to 1, not 0."""
    matrix = np.array([[0.3, 10.0], [0.3, 10.0], [1.0, 127.0]], np.float32)
    matrix[2, 0] = 127.0  # one step is 1
    x = np.repeat(np.random.default_rng(0).normal(size=(100, 1)), 3, axis=1)
    x[:, 2] = np.random.default_rng(1).normal(size=100)
    codes, scales = compensated_codes(matrix, (x.T @ x).astype(np.float32))
    np.testing.assert_allclose(scales, 1.0)
    assert codes[:2, 0].sum() == 1
    assert codes[:2, 1].tolist() == [10, 10]


def test_codes_are_nearer_where_inputs_hang_together() -> None:
    x = RANDOM.normal(size=(500, 8)) @ RANDOM.normal(size=(8, 40))
    codes, scales = compensated_codes(MATRIX, (x.T @ x).astype(np.float32))
    plain = np.rint(MATRIX / scales)
    errors = [np.linalg.norm(x @ (each * scales - MATRIX)) for each in (codes, plain)]
    assert errors[0] < 0.3 * errors[1]


def test_codes_of_neighbours_do_not_overflow_and_are_finer_than_7_bits() -> None:
    """Without VNNI, `255 · (code + code)` must be below 2^15."""
    rows = np.array([0, 1, 2, 4, 5, 7, *range(8, 40)])
    assert _neighbours(rows)[:6].tolist() == [1, 0, -1, 4, 3, -1]
    x = RANDOM.normal(size=(500, 8)) @ RANDOM.normal(size=(8, len(rows)))
    matrix = RANDOM.normal(size=(len(rows), 200)).astype(np.float32)
    codes, scales = compensated_codes(matrix, x.T @ x, _neighbours(rows))
    whole = np.zeros((40, 200), int)
    whole[rows] = codes
    assert np.abs(whole[0::2] + whole[1::2]).max() * 255 < 2**15
    assert np.abs(whole).max() <= 127
    assert (scales < np.abs(matrix).max(axis=0) / 63).mean() > 0.95
