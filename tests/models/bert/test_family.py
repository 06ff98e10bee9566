"""Adapters, hard negatives and the export, on a tiny BERT."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import use_st5
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


@pytest.mark.parametrize(("targets", "count"), [("query_value", 2), ("all_linear", 6)])
def test_adapters(encoder: TrainableEncoder, tmp_path: Path, targets: str, count: int) -> None:
    base = encoder.encode(TEXTS)
    adapters = apply_lora(encoder.model, targets=targets, rank=2)
    assert len(adapters.layers) == count
    assert adapters.layers[0] == "block_0/query"
    # New adapters add nothing, but TensorFlow may fuse the operations in another way.
    np.testing.assert_allclose(encoder.encode(TEXTS), base, atol=1e-6)
    rng = np.random.default_rng(0)
    for name, tensor in adapters.tensors.items():
        if name.endswith(".b"):
            tensor.assign(rng.normal(scale=0.5, size=tensor.shape))
    adapted = encoder.encode(TEXTS)
    assert np.abs(adapted - base).max() > 1e-3
    adapters.save(tmp_path / "adapters.safetensors")
    adapters.merge()
    np.testing.assert_allclose(encoder.encode(TEXTS), adapted, atol=1e-5)


@pytest.mark.parametrize(
    "targets", ["query_value", pytest.param("all_linear", marks=pytest.mark.end_to_end)]
)
def test_merged_adapters_are_exported(
    encoder: TrainableEncoder, tmp_path: Path, targets: Any
) -> None:
    before = encoder.encode(TEXTS)
    adapters = apply_lora(encoder.model, targets=targets, rank=2)
    for tensor in adapters.tensors.values():
        tensor.assign(tensor + 0.1)
    adapters.merge()
    encoder.export(tmp_path / "merged")
    adapted = encoder.encode(TEXTS)
    assert np.abs(adapted - before).max() > 1e-3
    exported = use_st5.load(tmp_path / "merged").encode(TEXTS, on_truncation="ignore")
    np.testing.assert_allclose(exported, adapted, atol=1e-5)


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
