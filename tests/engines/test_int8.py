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
from use_st5.engines.int8 import sentences
from use_st5.engines.onnx_model import onnx_model

pytest.importorskip("onnx", reason="the extra `onnx` is not installed")
pytest.importorskip("onnxruntime", reason="the extra `onnx` is not installed")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_sentences_are_distinct() -> None:
    assert len({*sentences()}) == 504


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
    folder = toy_use_transformer.folders["int8"]
    with pytest.raises(ValueError, match=r"cosine of 1.5 or more .* among 504 sentences"):
        SentenceEncoder(folder, backend="onnx-int8")
    manifest = ModelManifest.read(folder)
    assert manifest is not None
    float_file = onnx_model(folder, manifest)
    assert [each.parent for each in float_file.parent.parent.parent.glob("*/content/*")] == [
        float_file.parent
    ]


def test_block_codes_by_hand() -> None:
    matrix = np.zeros((20, 2), np.float32)
    matrix[:3, 0] = 12.7, -12.7, 1.26  # a block with steps of 0.1
    matrix[16, 0] = -254.0  # a block with steps of 2, of which 12 inputs are missing
    codes, scales = int8.block_codes(matrix)
    assert codes.shape == (2, 2, 16)
    np.testing.assert_allclose(scales, [[0.1, 2.0], [1.0, 1.0]], rtol=1e-6)
    assert codes[0, 0, :4].tolist() == [255, 1, 141, 128]
    assert codes[0, 1, :2].tolist() == [1, 128]
    assert (codes[1] == 128).all()


def test_blocks_serve_a_model_that_changes_too_much_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The lowest cosine of `round_products` is 0.9996, that of `round_blocks` is 0.9999.
    monkeypatch.setattr(int8, "LEAST_COSINE", 0.9998)
    texts = sentences()[::9]
    expected = use_st5.load("use_transformer_en", backend="onnx").encode(texts)
    encoder = SentenceEncoder(bundled_folder("use_transformer_en"), backend="onnx-int8")
    found = encoder.encode(texts)
    assert 0.9998 <= cosine(found, expected).min() < 1 - 1e-7
    alone = np.stack([encoder.encode(text) for text in texts])
    np.testing.assert_allclose(alone, found, atol=1e-5)


def test_a_use_dan_runs_as_with_onnx() -> None:
    one, other = (use_st5.load("use_dan_en", backend=each) for each in ("onnx", "onnx-int8"))
    np.testing.assert_array_equal(one.encode(["a b"]), other.encode(["a b"]))
