"""A USE-DAN in NumPy, compared with its SavedModel."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import use_st5
from tests.engines.fuzzed import fuzzed_texts
from tests.toy_encoders import Toy
from use_st5.encode.encoder import SentenceEncoder
from use_st5.engines import dan

TEXTS = ["How old are you?", "", " ", "the cat", "The cat sat on the mat. " * 300, "ﷺ naïve “q”"]


def test_vectors_are_those_of_the_saved_model(toy_use_dan: Toy) -> None:
    for folder in toy_use_dan.folders.values():
        expected = SentenceEncoder(folder).encode([*TEXTS, *fuzzed_texts(500)])
        found = SentenceEncoder(folder, backend="onnx").encode([*TEXTS, *fuzzed_texts(500)])
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_vectors_of_the_bundled_model() -> None:
    texts = [*TEXTS, *fuzzed_texts(500)]
    expected = use_st5.load("use_dan_en").encode(texts)
    found = use_st5.load("use_dan_en", backend="onnx").encode(texts)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_a_model_that_was_saved_again(toy_use_dan: Toy, tmp_path: Path) -> None:
    encoder = SentenceEncoder(toy_use_dan.folders["int8"])
    encoder.save(tmp_path / "again")
    found = SentenceEncoder(tmp_path / "again", backend="onnx").encode(TEXTS)
    np.testing.assert_allclose(found, encoder.encode(TEXTS), atol=1e-5)


def test_long_texts_are_read_in_pieces(toy_use_dan: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = SentenceEncoder(toy_use_dan.folders["int8"], backend="onnx")
    expected = encoder.encode(TEXTS)
    monkeypatch.setattr(dan, "_LONG", 10)
    monkeypatch.setattr(dan, "_ROWS", 3)
    np.testing.assert_allclose(encoder.encode(TEXTS), expected, atol=1e-6)
    monkeypatch.setattr(dan, "_LONG", 10**9)
    np.testing.assert_allclose(encoder.encode(TEXTS), expected, atol=1e-6)


@pytest.mark.parametrize("hidden", [[], [12], [12, 16, 16], [16, 12]])
def test_wrong_hidden_dims_are_refused(toy_use_dan: Toy, tmp_path: Path, hidden: list[int]) -> None:
    folder = shutil.copytree(toy_use_dan.folders["int8"], tmp_path / "model")
    record = folder / "use_st5.json"
    facts = json.loads(record.read_text("utf-8"))
    assert facts["config"]["config"]["hidden_dims"] != hidden
    facts["config"]["config"]["hidden_dims"] = hidden
    record.write_text(json.dumps(facts), encoding="utf-8")
    with pytest.raises(ValueError, match="hidden_dims, not two|do not belong together"):
        SentenceEncoder(folder, backend="onnx")


def test_an_unknown_activation_is_refused(toy_use_dan: Toy, tmp_path: Path) -> None:
    folder = shutil.copytree(toy_use_dan.folders["int8"], tmp_path / "model")
    record = folder / "use_st5.json"
    record.write_text(record.read_text("utf-8").replace('"tanh"', '"swish"'), encoding="utf-8")
    with pytest.raises(ValueError, match="no engine has the activation 'swish'"):
        SentenceEncoder(folder, backend="onnx")
