"""Static models of encoders: components and weights by hand, and models that work everywhere."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import tensorflow_hub as hub
from typer.testing import Result

import use_st5
from tests.tiny_bert import VOCABULARY, write_sentence_bert
from tests.toy_encoders import Toy
from use_st5.trainable_encoder import TrainableEncoder
from use_st5.training.distill import distill, principal_components, zipf_weights

pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")
TEXTS = ["a person", "another kind of animal .", "", "unheard"]


def test_components_by_hand() -> None:
    rows = np.array([[5, 1], [-3, 1], [1, 2], [1, 0]])  # around (1, 1), along the axes
    scale = (32 / 3) ** 0.25, (2 / 3) ** 0.25
    expected = np.array([[4, 0], [-4, 0], [0, 1], [0, -1]]) / scale
    np.testing.assert_allclose(principal_components(rows, 2), expected, atol=1e-9)
    np.testing.assert_allclose(principal_components(rows, 1), expected[:, :1], atol=1e-9)


def test_weights_by_hand() -> None:
    shares = np.array([6, 4, 3]) / 13  # 1/2, 1/3 and 1/4 of their sum
    np.testing.assert_allclose(zipf_weights(3, 0.1), 0.1 / (0.1 + shares))
    np.testing.assert_array_equal(zipf_weights(3, 0), 1)


def test_steps_of_model2vec() -> None:
    """Its components have another sign and are not divided; its weights are the same."""
    reason = "model2vec[distill] is not installed"
    peer = pytest.importorskip("model2vec.distill.inference", reason=reason)
    rows = np.random.default_rng(0).normal(size=(50, 8)) @ np.diag(np.arange(1, 9))
    expected = peer.apply_pca(rows, 5)
    found = principal_components(rows, 5) * expected.std(axis=0, ddof=1) ** 0.5
    np.testing.assert_allclose(np.abs(found), np.abs(expected), atol=1e-9)
    np.testing.assert_allclose(zipf_weights(50, 1e-4), peer.compute_weights(50, 1e-4))


def test_a_model_from_the_command_line(tmp_path: Path, use: Callable[..., Result]) -> None:
    write_sentence_bert(tmp_path / "bert")
    done = use("distill", "bert", "--to", "static", "--dimension", "4", "--sif", "0.1")
    assert done.exit_code == 0, done.output
    pieces = [word for word in VOCABULARY if not word.startswith("[")]
    vectors = TrainableEncoder.load(tmp_path / "bert").encode(pieces)
    table = principal_components(vectors, 4) * zipf_weights(len(pieces), 0.1)[:, None]
    places = [[pieces.index(word) for word in text.split() if word in pieces] for text in TEXTS]
    means = np.array([table[row].sum(axis=0) for row in places])
    expected = means / np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-12)
    encoder = use_st5.load(tmp_path / "static")
    np.testing.assert_allclose(encoder.encode(TEXTS), expected, atol=1e-4)
    np.testing.assert_allclose(hub.load(str(tmp_path / "static"))(TEXTS), expected, atol=1e-4)
    again = TrainableEncoder.load(tmp_path / "static")
    np.testing.assert_allclose(again.encode(TEXTS), expected, atol=1e-4)
    assert (again.name, again.metadata["sif"]) == ("static", 0.1)
    if importlib.util.find_spec("onnxruntime") is not None:
        engine = use_st5.load(tmp_path / "static", backend="onnx")
        np.testing.assert_allclose(engine.encode(TEXTS), expected, atol=1e-4)
    done = use("distill", "bert", "--to", "static")
    assert done.exit_code == 1
    assert "--overwrite" in done.stderr


def test_words_of_ones_own(tmp_path: Path, toy_use_dan: Toy) -> None:
    """BERT's pieces keep their places; other encoders read only the words."""
    write_sentence_bert(tmp_path / "bert")
    lines: list[str] = []
    words = ["Zebra", "a", "new york", "zebra", "##s", "violin", ""]
    manifest = distill(
        tmp_path / "bert", tmp_path / "m", vocabulary=words, dimension=4, log=lines.append
    )
    assert lines == ["left out 5 words: repeated, known or several tokens"]
    assert manifest.config["num_embeddings"] == len(VOCABULARY) + 2
    static = use_st5.load(tmp_path / "m")
    assert np.linalg.norm(static.encode("zebras")) == 0
    np.testing.assert_allclose(static.encode("ZEBRA violin"), static.encode("violin zebra"))
    encoder = TrainableEncoder(toy_use_dan.model, toy_use_dan.tokenizer)
    distill(encoder, tmp_path / "dan", vocabulary=["cat", "dog", "old", "Mat"], dimension=2)
    static = use_st5.load(tmp_path / "dan")
    np.testing.assert_allclose(static.encode("the cat is"), static.encode("cat"))
    assert np.linalg.norm(static.encode("mat")) == 0  # A capital in the words: case matters.


def test_refusals(tmp_path: Path, toy_use_dan: Toy) -> None:
    encoder = TrainableEncoder(toy_use_dan.model, toy_use_dan.tokenizer)
    with pytest.raises(ValueError, match="expected words: a NGramTokenizer has no pieces"):
        distill(encoder, tmp_path / "m")
    with pytest.raises(ValueError, match="dimension: expected 1 to 2 numbers, received 3"):
        distill(encoder, tmp_path / "m", vocabulary=["cat", "dog"], dimension=3)
    with pytest.raises(ValueError, match="expected words that"):
        distill(encoder, tmp_path / "m", vocabulary=["new york"])
    with pytest.raises(ValueError, match="sif: expected 0 or more"):
        distill(encoder, tmp_path / "m", sif=-1)
