"""A tiny BERT in the tests of every family, its export and hard negatives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.models.family_contract import FamilyContract
from use_st5.models.bert.model import BERT_PRESETS, BertConfig, SentenceBert
from use_st5.models.lora import apply_lora, load_lora
from use_st5.search import mine_hard_negatives
from use_st5.trainable_encoder import TrainableEncoder

TEXTS = ["the cat sat", "how old are you", "", "what is old", "a dog sat on the mat . " * 9]


@pytest.fixture
def encoder(toy_bert: Any) -> TrainableEncoder:
    """A newly loaded encoder, which a test may change."""
    return TrainableEncoder.load(toy_bert.folders["float32"])


def test_a_saved_model_has_no_head(toy_bert: Any, tmp_path: Path) -> None:
    model = SentenceBert.from_config({**toy_bert.model.get_config(), "dense": None, "head": True})
    encoder = TrainableEncoder(model, toy_bert.tokenizer)
    manifest = encoder.export(tmp_path / "model", precision="int8")
    # In addition to its codes it has a scale for each row of the table and each output of the
    # other matrices: the position table, and in a block five as wide as the model and one wider.
    config = model.config
    plain = SentenceBert.from_config({**model.get_config(), "head": False})
    plain.build()
    blocks = config.num_layers * (5 * config.hidden_dim + config.intermediate_dim)
    assert manifest.parameters == plain.count_params() + 18 + config.hidden_dim + blocks
    again = TrainableEncoder.load(tmp_path / "model")
    assert again.model.head is None
    np.testing.assert_allclose(again.encode(TEXTS), encoder.encode(TEXTS), atol=0.05)


@pytest.fixture
def toy_encoder(toy_bert: Any) -> TrainableEncoder:
    """An encoder around the toy itself, which no test may change."""
    return TrainableEncoder(toy_bert.model, toy_bert.tokenizer)


def test_a_long_text_keeps_its_separator(toy_encoder: TrainableEncoder) -> None:
    encoder = toy_encoder
    assert encoder.max_length == 16
    (ids,) = encoder.tokenizer.padded(TEXTS[-1:], encoder.max_length).numpy()
    assert (len(ids), ids[-1]) == (16, encoder.tokenizer.separator)
    for length in (0, 17):
        with pytest.raises(ValueError, match=f"expected 1 to 16, .* received {length}"):
            TrainableEncoder(encoder.model, encoder.tokenizer, max_length=length)


def test_saved_adapters_on_another_base_are_refused(
    encoder: TrainableEncoder, tmp_path: Path
) -> None:
    apply_lora(encoder.model).save(tmp_path / "adapters.safetensors")
    other = SentenceBert(BertConfig(18, 2, 12, 20, 3))
    other.build()
    with pytest.raises(ValueError, match="num_layers"):
        load_lora(other, tmp_path / "adapters.safetensors")


def test_hard_negatives(toy_encoder: TrainableEncoder) -> None:
    encoder = toy_encoder
    corpus = [text for text in TEXTS if text] + ["a cat", "you are what", "the mat"]
    ((anchor, positive, negative),) = mine_hard_negatives(
        encoder.encode, [("the cat sat", "a cat")], corpus=corpus, relative_margin=0.0
    )
    assert (anchor, positive) == ("the cat sat", "a cat")
    vectors = dict(zip(corpus, encoder.encode(corpus), strict=True))
    near = {text: float(vectors[text] @ vectors[anchor]) for text in corpus}
    others = [text for text in corpus if text != anchor and near[text] < near[positive]]
    assert negative == max(others, key=near.__getitem__)


def test_a_fresh_one_follows_its_tokenizer(toy_bert: Any) -> None:
    encoder = TrainableEncoder.fresh(
        "minilm_l6", toy_bert.tokenizer, num_layers=1, pooling="cls", max_positions=32
    )
    config = encoder.model.config
    assert (config.vocabulary_size, config.separator_id) == (18, 3)
    assert (encoder.max_length, encoder.dimension) == (32, BERT_PRESETS["minilm_l6"].hidden_dim)
    assert np.isfinite(encoder.encode(TEXTS)).all()


class TestBert(FamilyContract):
    name = "bert"
    adapted = 6
