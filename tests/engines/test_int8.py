"""Matrix products in int8: near float32, or refused."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import use_st5
from tests.toy_encoders import Toy
from use_st5.encode.encoder import SentenceEncoder
from use_st5.encode.similarity import cosine
from use_st5.engines import int8
from use_st5.engines.dan import DANEngine, GraphDANEngine
from use_st5.engines.int8 import (
    _neighbours,
    compensated_codes,
    has_vnni,
    round_rows,
    sentences,
)
from use_st5.engines.onnx_model import add_onnx_model, onnx_model
from use_st5.hub.model_manifest import ModelManifest
from use_st5.hub.model_names import bundled_folder
from use_st5.models.engines import family_engine
from use_st5.models.use_dan import engine as use_dan
from use_st5.models.use_transformer import engine as use_transformer

onnx = pytest.importorskip("onnx", reason="the extra `onnx` is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="the extra `onnx` is not installed")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def few_calibration_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = int8.calibration_texts()[::4]
    monkeypatch.setattr(int8, "calibration_texts", lambda: texts)


@pytest.mark.usefixtures("few_calibration_texts")
def test_the_bundled_transformer_without_vnni(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("use_st5.engines.onnx_model.has_vnni", lambda: False)
    monkeypatch.setattr(int8, "has_vnni", lambda: False)
    folder = bundled_folder("use_transformer_en")
    exact = SentenceEncoder(folder, backend="onnx")
    rounded = SentenceEncoder(folder, backend="onnx-int8")
    texts = ["How old are you?", "", "A man is playing a guitar.", *sentences()[::7]]
    found = cosine(rounded.encode(texts), exact.encode(texts))
    assert found.min() >= 0.999
    assert found.min() < 1 - 1e-7
    assert rounded.identity == exact.identity + "-int8"


def test_a_model_that_changes_too_much_is_refused(
    toy_use_transformer: Toy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(int8, "LEAST_COSINE", 1.5)
    monkeypatch.setattr(int8, "_SAFE_COSINE", 1.5)
    folder = toy_use_transformer.folders["int8"]
    with pytest.raises(ValueError, match="the cosine to float32 is .*not 1.5"):
        SentenceEncoder(folder, backend="onnx-int8")
    manifest = ModelManifest.read(folder)
    assert manifest is not None
    float_file = onnx_model(folder, manifest, use_transformer.ENGINE)
    assert [*float_file.parent.parent.parent.glob("*/content")] == [float_file.parent]


def test_each_source_of_calibration_texts_states_its_licence() -> None:
    path = Path(int8.__file__).with_name("calibration_texts.json")
    for source in json.loads(path.read_text(encoding="utf-8")):
        assert source["licence"] in ("CC BY 4.0", "CC0 1.0", "public domain")
        assert source["address"].startswith("https://")


def _words(text: str) -> str:
    return " ".join(re.findall("[a-z0-9]+", text.lower()))


@pytest.mark.end_to_end
@pytest.mark.parametrize("folder", ["sts_raw", "sts2017", "sick2014", "senteval/downstream"])
def test_no_calibration_text_is_in_an_evaluation_set(folder: str, data_dir: Path) -> None:
    files = [path for path in (data_dir / folder).rglob("*") if path.is_file()]
    if not files:
        pytest.skip("needs the evaluation sets")
    lines = "|".join(_words(path.read_bytes().decode("utf-8", "replace")) for path in files)
    texts = [_words(text) for text in int8.calibration_texts()[504:-1_600]]
    assert not [text for text in texts if f" {text} " in lines]


def test_block_codes_by_hand() -> None:
    matrix = np.zeros((20, 2), np.float32)
    matrix[:3, 0] = 12.7, -12.7, 1.26  # a block with steps of 0.1
    matrix[16, 0] = -254.0  # a block with steps of 2, which lacks 12 inputs
    codes, scales = int8.block_codes(matrix)
    assert codes.shape == (2, 2, 16)
    np.testing.assert_allclose(scales, [[0.1, 2.0], [1.0, 1.0]], rtol=1e-6)
    assert codes[0, 0, :4].tolist() == [255, 1, 141, 128]
    assert codes[0, 1, :2].tolist() == [1, 128]
    assert (codes[1] == 128).all()


def differences_alone(encoder: SentenceEncoder, texts: list[str]) -> np.ndarray:
    """How far each vector is from that of the text alone."""
    alone = np.stack([encoder.encode(text) for text in texts])
    return np.abs(alone - encoder.encode(texts)).max(axis=1)


@pytest.mark.usefixtures("few_calibration_texts")
@pytest.mark.parametrize("way", ["products", "rows", "blocks"])
def test_all_ways_are_near_float32_in_every_batch(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(int8, "_SAFE_COSINE", 1.1 if way == "blocks" else 0.9995)
    if way == "rows":  # One scale is too small for most inputs, so the vectors are wrong.
        monkeypatch.setattr(int8, "_MARGIN", 0.05)
    texts = sentences()[::9]
    expected = use_st5.load("use_transformer_en", backend="onnx").encode(texts)
    encoder = SentenceEncoder(bundled_folder("use_transformer_en"), backend="onnx-int8")
    assert 0.9995 <= cosine(encoder.encode(texts), expected).min() < 1 - 1e-7
    # Sums of another order, different by 1e-7, can round a number halfway between two codes.
    differences = differences_alone(encoder, texts)
    assert (differences < 1e-5).mean() > 0.9
    assert differences.max() < 1e-3


def test_the_bundled_dan() -> None:
    texts = ["How old are you?", "", "a b", *sentences()[::7]]
    exact = use_st5.load("use_dan_en", backend="onnx").encode(texts)
    rounded = SentenceEncoder(bundled_folder("use_dan_en"), backend="onnx-int8")
    assert 0.999 <= cosine(rounded.encode(texts), exact).min() < 1 - 1e-6
    differences = differences_alone(rounded, texts)
    assert (differences < 1e-5).mean() > 0.9
    assert differences.max() < 3e-3


@pytest.mark.parametrize("kind", ["float32", "int8"])
def test_the_graph_of_a_dan_has_the_vectors_of_numpy(kind: str, toy_use_dan: Toy) -> None:
    folder = toy_use_dan.folders[kind]
    manifest = ModelManifest.read(folder)
    assert manifest is not None
    graph = GraphDANEngine(onnx_model(folder, manifest, use_dan.ENGINE), folder, manifest)
    texts = ["How old are you?", "", *sentences()[:40]]
    np.testing.assert_allclose(graph.run(texts), DANEngine(folder, manifest).run(texts), atol=1e-6)


@pytest.mark.parametrize(("vnni", "first"), [(True, 2), (False, 3)])
def test_the_first_products_are_more_exact(vnni: bool, first: int, tmp_path: Path) -> None:
    manifest = ModelManifest.read(bundled_folder("use_dan_en"))
    assert manifest is not None
    source = onnx_model(bundled_folder("use_dan_en"), manifest, use_dan.ENGINE)
    int8.round_products(source, tmp_path / "int8.onnx", [], vnni=vnni, first=first)
    kinds = [node.op_type for node in onnx.load(tmp_path / "int8.onnx").graph.node]
    assert kinds.count("MatMulNBits" if vnni else "MatMul") == first
    assert kinds.count("MatMulIntegerToFloat") == 5 - first


PROCESS = """
import sys, use_st5
encoder = use_st5.load(sys.argv[1], backend="onnx-int8")
assert encoder.encode(["How old are you?"]).shape[0] == 1
"""


@pytest.mark.end_to_end
@pytest.mark.process
def test_processes_make_a_graph_at_once_and_write_nothing_beside_its_source(
    toy_use_transformer: Toy, tmp_path: Path
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(toy_use_transformer.folders["float32"], folder)
    add_onnx_model(folder, ModelManifest.read(folder), family_engine)
    before = sorted(folder.rglob("*"))
    folder.chmod(0o500)
    runs = [
        subprocess.Popen([sys.executable, "-c", PROCESS, folder], stderr=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    errors = [run.communicate(timeout=300)[1] for run in runs]
    folder.chmod(0o700)
    assert [run.returncode for run in runs] == [0] * 4, errors
    assert sorted(folder.rglob("*")) == before


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
