"""A tiny MPNet in the tests of every family."""

from __future__ import annotations

import keras
import numpy as np
import pytest

from tests.models import family_contract as contract
from use_st5.convert.tokenizer_files import MPNET_TOKENS
from use_st5.models.mpnet.model import MPNetConfig, SentenceMPNet
from use_st5.trainable_encoder import TrainableEncoder

pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")

from use_st5.tokenizers.wordpiece_tokenizer import WordPieceTokenizer  # noqa: E402

WORDS = ["<s>", "<pad>", "</s>", "[UNK]", *contract.WORDS, "<mask>"]


@pytest.fixture
def encoder() -> TrainableEncoder:
    """A tiny encoder of two blocks."""
    keras.utils.set_random_seed(0)
    config = MPNetConfig(len(WORDS), 2, 8, 12, 2, max_positions=24, relative_buckets=8)
    model = SentenceMPNet(config, normalize=True)
    model.build()
    # The initial weights are so small that all vectors are nearly the same.
    for variable in model.trainable_variables:
        variable.assign(variable * 15 if len(variable.shape) == 2 else variable)
    return TrainableEncoder(model, WordPieceTokenizer(WORDS, special=MPNET_TOKENS))


def test_padding_and_the_first_word_change_places(encoder: TrainableEncoder) -> None:
    assert encoder.tokenizer.padding_id == 1
    ids = encoder.tokenizer.padded(["the cat", ""]).numpy()
    np.testing.assert_array_equal(ids, [[1, 4, 5, 2], [1, 2, 0, 0]])
    pairs = encoder.tokenizer.padded_pairs(["the"], ["cat"]).numpy()
    np.testing.assert_array_equal(pairs, [[1, 4, 2, 2, 5, 2]])


class TestMPNet(contract.FamilyContract):
    name = "mpnet"
    adapted = 12
