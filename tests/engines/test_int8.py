"""Matrix products in int8: near float32, or refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import use_st5
from tests.toy_encoders import Toy
from use_st5._bundled import bundled_folder
from use_st5._model_manifest import ModelManifest
from use_st5._vectors import cosine
from use_st5.encoder import SentenceEncoder
from use_st5.engines import int8
from use_st5.engines.dan import DANEngine, GraphDANEngine
from use_st5.engines.int8 import sentences
from use_st5.engines.onnx_model import onnx_model

pytest.importorskip("onnx", reason="the extra `onnx` is not installed")
pytest.importorskip("onnxruntime", reason="the extra `onnx` is not installed")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def few_calibration_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = int8.calibration_texts()[::4]
    monkeypatch.setattr(int8, "calibration_texts", lambda: texts)


def test_sentences_are_distinct() -> None:
    assert len({*sentences()}) == 504


@pytest.mark.usefixtures("few_calibration_texts")
@pytest.mark.parametrize("vnni", [True, False])
def test_the_bundled_transformer(vnni: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if vnni and not int8.has_vnni():
        pytest.skip("needs a processor with VNNI")
    monkeypatch.setattr("use_st5.engines.onnx_model.has_vnni", lambda: vnni)
    monkeypatch.setattr(int8, "has_vnni", lambda: vnni)
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
    with pytest.raises(ValueError, match=r"cosine of 1.5 or more .* among 504 sentences"):
        SentenceEncoder(folder, backend="onnx-int8")
    manifest = ModelManifest.read(folder)
    assert manifest is not None
    float_file = onnx_model(folder, manifest)
    assert [*float_file.parent.parent.parent.glob("*/content")] == [float_file.parent]


def test_calibration_texts_are_of_many_kinds() -> None:
    texts = int8.calibration_texts()
    assert "The museum is not open on Mondays." in texts[504 : 504 + 3 * 400]
    words = [text.strip(".!? ") for text in texts[504 + 3 * 400 :]]
    assert len(words) > 1_500
    assert not [word for word in words if " " in word]
    assert {text[-1] for text in texts[-4:]} > {".", "!", "?"}


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


@pytest.mark.usefixtures("few_calibration_texts")
@pytest.mark.parametrize("way", ["rows", "blocks"])
def test_other_ways_serve_a_model_that_changes_too_much_otherwise(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The lowest cosine of `round_products` is 0.9996, that of the other ways is 0.9998 or more.
    monkeypatch.setattr(int8, "LEAST_COSINE", 0.9998)
    monkeypatch.setattr(int8, "_SAFE_COSINE", 0.9997 if way == "rows" else 1.1)
    texts = sentences()[::9]
    expected = use_st5.load("use_transformer_en", backend="onnx").encode(texts)
    encoder = SentenceEncoder(bundled_folder("use_transformer_en"), backend="onnx-int8")
    found = encoder.encode(texts)
    assert 0.9998 <= cosine(found, expected).min() < 1 - 1e-7
    alone = np.stack([encoder.encode(text) for text in texts])
    # Sums of another order, different by 1e-7, can round a number halfway between two codes.
    differences = np.abs(alone - found).max(axis=1)
    assert (differences < 1e-5).mean() > 0.9
    assert differences.max() < 1e-3


def test_the_bundled_dan() -> None:
    texts = ["How old are you?", "", "a b", *sentences()[::7]]
    exact = use_st5.load("use_dan_en", backend="onnx").encode(texts)
    rounded = SentenceEncoder(bundled_folder("use_dan_en"), backend="onnx-int8")
    for batch_size in (1, 128):
        found = cosine(rounded.encode(texts, batch_size=batch_size), exact)
        assert 0.999 <= found.min() < 1 - 1e-6


@pytest.mark.parametrize("kind", ["float32", "int8"])
def test_the_graph_of_a_dan_has_the_vectors_of_numpy(kind: str, toy_use_dan: Toy) -> None:
    folder = toy_use_dan.folders[kind]
    manifest = ModelManifest.read(folder)
    assert manifest is not None
    graph = GraphDANEngine(onnx_model(folder, manifest), folder, manifest)
    texts = ["How old are you?", "", *sentences()[:40]]
    np.testing.assert_allclose(graph.run(texts), DANEngine(folder, manifest).run(texts), atol=1e-6)


@pytest.mark.parametrize(("vnni", "first"), [(True, 2), (False, 3)])
def test_the_first_products_are_more_exact(vnni: bool, first: int, tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    manifest = ModelManifest.read(bundled_folder("use_dan_en"))
    assert manifest is not None
    source = onnx_model(bundled_folder("use_dan_en"), manifest)
    int8.round_products(source, tmp_path / "int8.onnx", vnni=vnni, first=first)
    kinds = [node.op_type for node in onnx.load(tmp_path / "int8.onnx").graph.node]
    assert kinds.count("MatMulNBits" if vnni else "MatMul") == first
    assert kinds.count("MatMulInteger") == 5 - first
