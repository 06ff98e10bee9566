from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.models.token_vectors import first_blocks, token_vectors
from use_st5.convert.checkpoint import open_checkpoint
from use_st5.models.bert.checkpoint import read_sentence_bert
from use_st5.tokenizers.byte_pair_tokenizer import byte_letters
from use_st5.trainable_encoder import TrainableEncoder

torch = pytest.importorskip("torch", reason="the extra `peers` is not installed")
transformers = pytest.importorskip("transformers")

SHAPE = {
    "vocab_size": 60,
    "hidden_size": 24,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 40,
}
# [CLS] is 1, [SEP] 3: two single texts and a pair.
BERT_IDS = np.array(
    [[1, 9, 33, 3, 0, 0, 0], [1, 3, 0, 0, 0, 0, 0], [1, 7, 3, 8, 59, 5, 3]], np.int32
)
# RoBERTa's own: <s> is 0, <pad> 1, </s> 2.
ROBERTA_IDS = np.array(
    [[0, 9, 33, 2, 1, 1, 1], [0, 2, 1, 1, 1, 1, 1], [0, 7, 2, 2, 59, 5, 2]], np.int32
)


def shaken(model: Any) -> Any:
    """Adds noise to all weights of a model, norms and biases included."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return model.eval()


def outputs(model: Any, ids: np.ndarray, padding: int, **inputs: Any) -> tuple:
    """The hidden states of every layer and the logits of the words."""
    given = {"input_ids": ids, "attention_mask": ids != padding, **inputs}
    with torch.no_grad():
        out = model(
            **{name: torch.tensor(array).long() for name, array in given.items()},
            output_hidden_states=True,
        )
    return [each.numpy() for each in out.hidden_states], out.logits.numpy()


def check(folder: Path, ids: np.ndarray, hidden: list[np.ndarray], logits: np.ndarray) -> None:
    model = read_sentence_bert(open_checkpoint(folder), separator=3)
    mask = (ids != 0)[..., None]
    tokens = token_vectors(model, ids)
    np.testing.assert_allclose(tokens * mask, hidden[-1] * mask, atol=1e-5)
    np.testing.assert_allclose(model(ids), (hidden[-1] * mask).sum(1) / mask.sum(1), atol=1e-5)
    np.testing.assert_allclose(model.word_logits(tokens) * mask, logits * mask, atol=1e-5)
    for layers in range(len(hidden) - 1):
        expected = (hidden[layers] * mask).sum(1) / mask.sum(1)
        np.testing.assert_allclose(first_blocks(model, layers)(ids), expected, atol=1e-5)


@pytest.mark.parametrize("activation", ["gelu", "gelu_new"])
def test_a_bert_with_pairs(tmp_path: Path, activation: str) -> None:
    torch.manual_seed(0)
    config = transformers.BertConfig(
        **SHAPE, max_position_embeddings=9, type_vocab_size=2, hidden_act=activation
    )
    peer = shaken(transformers.BertForMaskedLM(config))
    peer.save_pretrained(tmp_path, max_shard_size="20KB")
    assert len([*tmp_path.glob("*.safetensors")]) > 1
    types = np.zeros_like(BERT_IDS)
    types[2, 3:] = 1
    check(tmp_path, BERT_IDS, *outputs(peer, BERT_IDS, 0, token_type_ids=types))


def test_a_roberta_with_pairs(tmp_path: Path) -> None:
    torch.manual_seed(0)
    config = transformers.RobertaConfig(
        **SHAPE,
        max_position_embeddings=9 + 2,
        type_vocab_size=1,
        pad_token_id=1,
        layer_norm_eps=1e-5,
    )
    peer = shaken(transformers.RobertaForMaskedLM(config))
    peer.save_pretrained(tmp_path)
    swapped = np.array([1, 0, *range(2, 60)], np.int32)
    hidden, logits = outputs(peer, ROBERTA_IDS, 1)
    check(tmp_path, swapped[ROBERTA_IDS], hidden, logits[..., swapped])


def test_an_encoder_alone_has_no_head(tmp_path: Path) -> None:
    config = transformers.BertConfig(**SHAPE)
    shaken(transformers.BertModel(config)).save_pretrained(tmp_path)
    assert read_sentence_bert(open_checkpoint(tmp_path), separator=3).head is None


def test_a_roberta_from_strings(tmp_path: Path) -> None:
    """It has its own byte pairs, and the ids of padding and start are exchanged."""
    pieces = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3}
    for piece in (*byte_letters(), "th", "the", "\u0120c", "<mask>"):
        pieces[piece] = len(pieces)
    merges = "#version: 0.2\nt h\nth e\n\u0120 c\n"
    (tmp_path / "vocab.json").write_text(json.dumps(pieces), encoding="utf-8")
    (tmp_path / "merges.txt").write_text(merges, encoding="utf-8")
    config = transformers.RobertaConfig(
        **{**SHAPE, "vocab_size": len(pieces)},
        max_position_embeddings=34,
        type_vocab_size=1,
        pad_token_id=1,
    )
    torch.manual_seed(0)
    peer = shaken(transformers.RobertaModel(config, add_pooling_layer=False))
    peer.save_pretrained(tmp_path)
    tokenizer = transformers.RobertaTokenizerFast(
        str(tmp_path / "vocab.json"), str(tmp_path / "merges.txt")
    )
    encoder = TrainableEncoder.load(tmp_path, pooling="cls")
    texts = ["the cat", "", "naïve 😀", "the " * 30]
    vectors = encoder.encode(texts)
    for text, vector in zip(texts, vectors, strict=True):
        ids = tokenizer([text], truncation=True, max_length=32, return_tensors="pt")["input_ids"]
        with torch.no_grad():
            np.testing.assert_allclose(
                vector, peer(input_ids=ids).last_hidden_state[0, 0].numpy(), atol=1e-5
            )
