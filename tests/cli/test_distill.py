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
from use_st5.training.distill import distill, evened, principal_axes, ridge, sif_weights

pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")
TEXTS = ["a person", "another kind of animal .", "", "unheard"]


def test_components_by_hand() -> None:
    rows = np.array([[0, 4], [0, -4], [-1, 0], [1, 0]])
    np.testing.assert_allclose(principal_axes(rows, 2), [[0, 1], [1, 0]], atol=1e-9)
    np.testing.assert_allclose(principal_axes(rows, 1), [[0], [1]], atol=1e-9)
    scale = (1 / 2) ** 0.25, 8**0.25  # the roots of deviations, whose squares are 2/4 and 32/4
    np.testing.assert_allclose(evened(rows), rows / scale)


def test_weights_by_hand() -> None:
    counts = np.array([6, 3, 1])
    np.testing.assert_allclose(sif_weights(counts, 0.1), [1 / 7, 1 / 4, 1 / 2])
    np.testing.assert_array_equal(sif_weights(counts, 0), 1)


def test_ridge_is_the_solution_of_its_equations() -> None:
    sparse = pytest.importorskip("scipy.sparse")
    random = np.random.default_rng(0)
    means = random.random((20, 6)) * (random.random((20, 6)) < 0.5)
    targets, start = random.normal(size=(20, 3)), random.normal(size=(6, 3))
    found = ridge(sparse.csr_array(means), targets, start, 0.3)
    squares = means.T @ means + 0.3 * np.eye(6)
    expected = np.linalg.solve(squares, means.T @ targets + 0.3 * start)
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_steps_of_model2vec() -> None:
    """Its components may have another sign; its weights are the same."""
    reason = "model2vec[distill] is not installed"
    peer = pytest.importorskip("model2vec.distill.inference", reason=reason)
    rows = np.random.default_rng(0).normal(size=(50, 8)) @ np.diag(np.arange(1, 9))
    expected = peer.apply_pca(rows, 5)
    centred = rows - rows.mean(axis=0)
    found = centred @ principal_axes(centred, 5)
    np.testing.assert_allclose(np.abs(found), np.abs(expected), atol=1e-9)
    zipf = 1 / np.arange(2, 52)
    np.testing.assert_allclose(sif_weights(zipf, 1e-4), peer.compute_weights(50, 1e-4))


def test_a_model_from_the_command_line(tmp_path: Path, use: Callable[..., Result]) -> None:
    write_sentence_bert(tmp_path / "bert")
    done = use("distill", "bert", "--to", "static", "--dimension", "4", "--sif", "0.1")
    assert done.exit_code == 0, done.output
    pieces = [word for word in VOCABULARY if not word.startswith("[")]
    vectors = TrainableEncoder.load(tmp_path / "bert").encode(pieces)
    centred = vectors - vectors.mean(axis=0)
    weights = sif_weights(1 / np.arange(2, len(pieces) + 2), 0.1)
    table = evened(centred @ principal_axes(centred, 4)) * weights[:, None]
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


def test_texts_teach_the_rows(tmp_path: Path, toy_use_dan: Toy) -> None:
    """The mean of rows comes nearer to the encoder's vectors; words come from the texts."""
    write_sentence_bert(tmp_path / "bert")
    encoder = TrainableEncoder.load(tmp_path / "bert")
    words, random = VOCABULARY[5:], np.random.default_rng(0)
    texts = [" ".join(random.choice(words, 4)) for _ in range(300)]
    wanted = np.corrcoef(encoder.encode(texts[200:]))
    errors = []
    for name, learned in (("first", []), ("second", texts[:200])):
        distill(encoder, tmp_path / name, texts=learned, dimension=8, sif=0)
        vectors = use_st5.load(tmp_path / name).encode(texts[200:])
        errors.append(np.square(np.corrcoef(vectors) - wanted).mean())
    assert errors[1] < 0.8 * errors[0], errors
    encoder = TrainableEncoder(toy_use_dan.model, toy_use_dan.tokenizer)
    distill(encoder, tmp_path / "dan", texts=["The cat.", "a dog, a cat!"], dimension=2)
    found = use_st5.load(tmp_path / "dan").encode(["cat", "CAT unheard", "unheard"])
    np.testing.assert_allclose(found[0], found[1])
    assert np.linalg.norm(found, axis=1).round(4).tolist() == [1, 1, 0]


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
    with pytest.raises(ValueError, match="a vocabulary or texts: a NGramTokenizer"):
        distill(encoder, tmp_path / "m")
    with pytest.raises(ValueError, match="dimension: expected 1 to 2 numbers, received 3"):
        distill(encoder, tmp_path / "m", vocabulary=["cat", "dog"], dimension=3)
    with pytest.raises(ValueError, match="expected single words"):
        distill(encoder, tmp_path / "m", vocabulary=["new york"])
    with pytest.raises(ValueError, match="sif: expected 0 or more"):
        distill(encoder, tmp_path / "m", sif=-1)
