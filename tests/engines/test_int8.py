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
from use_st5.engines.int8 import sentences
from use_st5.engines.onnx_model import add_onnx_model, onnx_model
from use_st5.evaluation.minimal_pairs import minimal_pairs
from use_st5.hub.bundled import bundled_folder
from use_st5.hub.model_manifest import ModelManifest
from use_st5.models.engines import family_engine
from use_st5.models.use_dan import engine as use_dan
from use_st5.models.use_transformer import engine as use_transformer

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
    float_file = onnx_model(folder, manifest, use_transformer.ENGINE)
    assert [*float_file.parent.parent.parent.glob("*/content")] == [float_file.parent]


def test_calibration_texts_are_of_many_kinds() -> None:
    texts = int8.calibration_texts()
    lengths = [len(text.split()) for text in texts[504:-1_600]]
    assert 600 <= len(lengths) <= 1_000
    assert min(lengths) <= 3
    assert 90 <= max(lengths) <= 100
    words = texts[-1_600:]
    assert not [word for word in words if " " in word.rstrip(" !")]
    assert {text[-1] for text in words[-4:]} > {".", "!", "?"}


def test_each_source_of_calibration_texts_states_its_licence() -> None:
    path = Path(int8.__file__).with_name("calibration_texts.json")
    for source in json.loads(path.read_text(encoding="utf-8")):
        assert source["licence"] in ("CC BY 4.0", "CC0 1.0", "public domain")
        assert source["address"].startswith("https://")


def _words(text: str) -> str:
    return " ".join(re.findall("[a-z0-9]+", text.lower()))


def test_no_calibration_text_is_a_minimal_pair() -> None:
    texts = {_words(text) for text in int8.calibration_texts()}
    items = [item for kind in minimal_pairs().values() for item in kind]
    assert not [item for item in items if texts & {*map(_words, item)}]


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
    onnx = pytest.importorskip("onnx")
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


def test_nothing_is_written_beside_the_source(toy_use_transformer: Toy, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(toy_use_transformer.folders["float32"], folder)
    add_onnx_model(folder, ModelManifest.read(folder), family_engine)
    before = sorted(folder.rglob("*"))
    written = folder.stat().st_mtime_ns
    SentenceEncoder(folder, backend="onnx-int8")
    assert sorted(folder.rglob("*")) == before
    assert folder.stat().st_mtime_ns == written
