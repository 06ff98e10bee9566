"""MPNets of transformers, with random weights, from strings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.models.token_vectors import token_vectors
from use_st5.encode.cross_encoder import CrossEncoder
from use_st5.models.mpnet.model import SentenceMPNet
from use_st5.trainable_encoder import TrainableEncoder

pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")
torch = pytest.importorskip("torch", reason="the extra `peers` is not installed")
transformers = pytest.importorskip("transformers")

WORDS = ["<s>", "<pad>", "</s>", "<unk>", "the", "[UNK]", "cat", "sat", "##s", "a", ".", "<mask>"]
TEXTS = ["the cat sat.", "", "A CAT sats", "the " * 60, "dogs"]
SHAPE = {
    "vocab_size": len(WORDS),
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 40,
    "max_position_embeddings": 40 + 2,
    "layer_norm_eps": 1e-5,
}


def saved(folder: Path, kind: Any, **settings: Any) -> Any:
    """Saves a model with random weights, norms and biases included, and its tokenizer."""
    torch.manual_seed(0)
    model = kind(transformers.MPNetConfig(**SHAPE, **settings)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    model.save_pretrained(folder)
    (folder / "vocab.txt").write_text("".join(f"{word}\n" for word in WORDS), encoding="utf-8")
    return model


def ids_of(words: list[str]) -> Any:
    """The ids for transformers, and the mask of those that are no padding."""
    rows = [[WORDS.index(word) for word in row.split()] for row in words]
    longest = max(map(len, rows))
    ids = torch.tensor([row + [1] * (longest - len(row)) for row in rows])
    return {"input_ids": ids, "attention_mask": (ids != 1).long()}


IDS = [
    "<s> the cat sat . </s>",
    "<s> </s>",
    "<s> a cat sat ##s </s>",
    f"<s> {'the ' * 38} </s>",
    "<s> [UNK] </s>",
]


def test_vectors_and_words(tmp_path: Path) -> None:
    peer = saved(tmp_path, transformers.MPNetForMaskedLM)
    given = ids_of(IDS)
    with torch.no_grad():
        out = peer(**given, output_hidden_states=True)
    hidden, mask = out.hidden_states[-1].numpy(), given["attention_mask"].numpy()[..., None]
    encoder = TrainableEncoder.load(tmp_path)
    assert isinstance(encoder.model, SentenceMPNet)
    expected = (hidden * mask).sum(1) / mask.sum(1)
    np.testing.assert_allclose(encoder.encode(TEXTS), expected, atol=1e-5)
    ids = encoder.tokenizer.padded(TEXTS, encoder.max_length)
    logits = encoder.model.word_logits(token_vectors(encoder.model, ids))
    swapped = [1, 0, *range(2, len(WORDS))]
    np.testing.assert_allclose(logits * mask, out.logits.numpy()[..., swapped] * mask, atol=1e-4)


def test_whole_tokenizer_and_pairs(tmp_path: Path) -> None:
    """`tokenizer.json` as transformers writes it, and a classifier of pairs."""
    peer = saved(tmp_path, transformers.MPNetForSequenceClassification, num_labels=1)
    transformers.MPNetTokenizerFast(str(tmp_path / "vocab.txt")).save_pretrained(tmp_path)
    (tmp_path / "vocab.txt").unlink(missing_ok=True)
    frame = json.loads((tmp_path / "tokenizer.json").read_text("utf-8"))["post_processor"]
    assert frame["type"] == "RobertaProcessing"
    with torch.no_grad():
        logits = peer(**ids_of(["<s> the cat </s> </s> a cat </s>"])).logits.numpy()
    scores = CrossEncoder.load(tmp_path).predict([("the cat", "a cat")])
    np.testing.assert_allclose(scores, 1 / (1 + np.exp(-logits[:, 0])), atol=1e-5)


def test_other_settings_are_refused(tmp_path: Path) -> None:
    saved(tmp_path, transformers.MPNetModel)
    path = tmp_path / "config.json"
    settings = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**settings, "pad_token_id": 0}), encoding="utf-8")
    with pytest.raises(ValueError, match=r"\$\.pad_token_id: expected 1 or None, received 0"):
        TrainableEncoder.load(tmp_path)
    # transformers computes with 32 buckets, whatever the setting is.
    saved(tmp_path, transformers.MPNetModel, relative_attention_num_buckets=64)
    with pytest.raises(ValueError, match=r"relative_attention_bias.weight: expected \[32"):
        TrainableEncoder.load(tmp_path)
