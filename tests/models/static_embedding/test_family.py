"""A tiny StaticEmbedding in the tests of every family."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import keras
import numpy as np
import pytest

import use_st5
from tests.models import family_contract as contract
from use_st5.models.family import family_of
from use_st5.models.static_embedding.model import StaticEmbedding
from use_st5.tokenizers.long_texts import LONG_BYTES
from use_st5.trainable_encoder import TrainableEncoder

pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")

from use_st5.tokenizers.wordpiece_tokenizer import WordPieceTokenizer  # noqa: E402

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *contract.WORDS]


@pytest.fixture
def encoder() -> TrainableEncoder:
    """An encoder of eight dimensions."""
    keras.utils.set_random_seed(0)
    model = StaticEmbedding(len(WORDS), 8)
    model.build()
    return TrainableEncoder(model, WordPieceTokenizer(WORDS))


def test_it_is_trained(encoder: TrainableEncoder) -> None:
    contract.check_training(encoder)


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_it_is_exported(encoder: TrainableEncoder, precision: str, tmp_path: Path) -> None:
    assert family_of(encoder.model).name == "static_embedding"
    contract.check_export(encoder, precision, tmp_path / precision)


def test_a_long_text_is_read_to_its_end(encoder: TrainableEncoder, tmp_path: Path) -> None:
    long = "the cat " * (LONG_BYTES // 8) + "dog " * (LONG_BYTES // 4)
    encoder.export(tmp_path / "model")
    found = use_st5.load(tmp_path / "model").encode([long, "a mat", ""])
    words = np.array([encoder.encode(word) for word in ("the", "cat", "dog", "a", "mat")])
    # "dog" is in it as often as "the" and "cat" together.
    expected = [words[:3].T @ [0.25, 0.25, 0.5], words[3:].mean(axis=0), np.zeros(8)]
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_texts_are_cut_as_ids_are(encoder: TrainableEncoder, tmp_path: Path) -> None:
    encoder = TrainableEncoder(encoder.model, encoder.tokenizer, max_length=5)
    encoder.export(tmp_path / "model")
    cut = use_st5.load(tmp_path / "model")
    texts = [*contract.TEXTS, "the cat sat " + "dog " * LONG_BYTES]
    found = cut.encode(texts, on_truncation="ignore")
    np.testing.assert_allclose(found, encoder.encode(texts), atol=1e-6)
    np.testing.assert_allclose(found[-1], found[0], atol=1e-6)
    assert cut.truncated(texts).tolist() == [2, 3, 4]


@pytest.mark.end_to_end
@pytest.mark.process
def test_a_fresh_process_loads_it(
    encoder: TrainableEncoder, tmp_path: Path, fresh_python: Callable[..., str]
) -> None:
    pytest.importorskip("tensorflow_hub", reason="the extra `hub` is not installed")
    contract.check_fresh_process(encoder, tmp_path / "model", fresh_python)
