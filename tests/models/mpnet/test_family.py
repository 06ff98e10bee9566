"""A tiny MPNet goes the ways of every family."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import keras
import numpy as np
import pytest

from tests.models import family_contract as contract
from use_st5.convert.tokenizer_files import MPNET_TOKENS
from use_st5.models.family import family_of
from use_st5.models.mpnet.model import MPNetConfig, SentenceMPNet
from use_st5.trainable_encoder import TrainableEncoder

pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")

from use_st5.tokenizers.wordpiece_tokenizer import WordPieceTokenizer  # noqa: E402

WORDS = ["<s>", "<pad>", "</s>", "[UNK]", *contract.WORDS, "<mask>"]


@pytest.fixture
def encoder() -> TrainableEncoder:
    """A tiny one of two blocks."""
    keras.utils.set_random_seed(0)
    config = MPNetConfig(len(WORDS), 2, 8, 12, 2, max_positions=24, relative_buckets=8)
    model = SentenceMPNet(config, normalize=True)
    model.build()
    # The first weights are so small that all vectors are nearly the same.
    for variable in model.trainable_variables:
        variable.assign(variable * 15 if len(variable.shape) == 2 else variable)
    return TrainableEncoder(model, WordPieceTokenizer(WORDS, special=MPNET_TOKENS))


def test_padding_and_the_first_word_change_places(encoder: TrainableEncoder) -> None:
    assert encoder.tokenizer.padding_id == 1
    ids = encoder.tokenizer.padded(["the cat", ""]).numpy()
    np.testing.assert_array_equal(ids, [[1, 4, 5, 2], [1, 2, 0, 0]])
    pairs = encoder.tokenizer.padded_pairs(["the"], ["cat"]).numpy()
    np.testing.assert_array_equal(pairs, [[1, 4, 2, 2, 5, 2]])


@pytest.mark.end_to_end
def test_it_is_trained(encoder: TrainableEncoder) -> None:
    contract.check_training(encoder)


def test_it_is_adapted(encoder: TrainableEncoder) -> None:
    contract.check_adapters(encoder, layers=12)


@pytest.mark.parametrize(
    "precision", ["int8", pytest.param("float32", marks=pytest.mark.end_to_end)]
)
def test_it_is_exported(encoder: TrainableEncoder, precision: str, tmp_path: Path) -> None:
    assert family_of(encoder.model).name == "mpnet"
    contract.check_export(encoder, precision, tmp_path / precision)


@pytest.mark.end_to_end
def test_it_compares_pairs(encoder: TrainableEncoder, tmp_path: Path) -> None:
    contract.check_cross_encoder(encoder, tmp_path / "judge")


@pytest.mark.end_to_end
@pytest.mark.process
def test_a_fresh_process_loads_it(
    encoder: TrainableEncoder, tmp_path: Path, fresh_python: Callable[..., str]
) -> None:
    pytest.importorskip("tensorflow_hub", reason="the extra `hub` is not installed")
    contract.check_fresh_process(encoder, tmp_path / "model", fresh_python)
