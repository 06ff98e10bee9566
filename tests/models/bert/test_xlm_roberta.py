"""XLM-RoBERTas of transformers, and BERTs with their vocabulary, from strings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")
torch = pytest.importorskip("torch", reason="the extra `peers` is not installed")
transformers = pytest.importorskip("transformers")
tokenizers = pytest.importorskip("tokenizers")

from tests.models.bert.test_huggingface import ROBERTA_IDS, SHAPE, check, outputs, shaken  # noqa: E402
from tests.tokenizers.test_framed_sentencepiece_tokenizer import TEXTS, whole  # noqa: E402
from use_st5.encode.cross_encoder import CrossEncoder  # noqa: E402
from use_st5.trainable_encoder import TrainableEncoder  # noqa: E402

PIECES = 500


def save(folder: Path, peer: Any) -> Any:
    """Saves a model and a small `tokenizer.json`; returns that as Hugging Face reads it."""
    peer.save_pretrained(folder)
    content = whole()
    vocabulary = content["model"]["vocab"]
    content["model"]["vocab"] = [*vocabulary[: PIECES - 1], vocabulary[-1]]
    (folder / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_truncation(32)
    return tokenizer


def test_the_words_of_its_head(tmp_path: Path) -> None:
    torch.manual_seed(0)
    config = transformers.XLMRobertaConfig(
        **SHAPE, max_position_embeddings=9 + 2, type_vocab_size=1, layer_norm_eps=1e-5
    )
    peer = shaken(transformers.XLMRobertaForMaskedLM(config))
    peer.save_pretrained(tmp_path)
    swapped = np.array([1, 0, *range(2, 60)], np.int32)
    hidden, logits = outputs(peer, ROBERTA_IDS, 1)
    check(tmp_path, swapped[ROBERTA_IDS], hidden, logits[..., swapped])


@pytest.mark.parametrize("kind", ["XLMRoberta", "Bert"])
def test_from_strings(tmp_path: Path, kind: str) -> None:
    """By its `config.json`, multilingual-e5-small is a BERT with the padding id 0."""
    torch.manual_seed(0)
    settings = {**SHAPE, "vocab_size": PIECES + 3}
    settings["max_position_embeddings"] = 32 if kind == "Bert" else 34
    config = getattr(transformers, f"{kind}Config")(**settings)
    peer = shaken(getattr(transformers, f"{kind}Model")(config, add_pooling_layer=False))
    tokenizer = save(tmp_path, peer)
    encoder = TrainableEncoder.load(tmp_path, pooling="mean")
    assert encoder.max_length == 32
    texts = [*TEXTS, "the " * 60]
    for text, vector in zip(texts, encoder.encode(texts), strict=True):
        ids = torch.tensor([tokenizer.encode(text).ids])
        with torch.no_grad():
            expected = peer(input_ids=ids).last_hidden_state[0].mean(dim=0).numpy()
        np.testing.assert_allclose(vector, expected, atol=1e-5)


def test_pairs(tmp_path: Path) -> None:
    torch.manual_seed(0)
    config = transformers.XLMRobertaConfig(
        **{**SHAPE, "vocab_size": PIECES}, max_position_embeddings=34, num_labels=1
    )
    peer = shaken(transformers.XLMRobertaForSequenceClassification(config))
    tokenizer = save(tmp_path, peer)
    pairs = [("the cat", "a mat"), ("the " * 30, "dogs ran"), ("", "on it")]
    scores = CrossEncoder.load(tmp_path).predict(pairs)
    for pair, score in zip(pairs, scores, strict=True):
        ids = torch.tensor([tokenizer.encode(*pair).ids])
        with torch.no_grad():
            expected = torch.sigmoid(peer(input_ids=ids).logits[0, 0]).item()
        assert score == pytest.approx(expected, abs=1e-5)
