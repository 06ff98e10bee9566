"""DistilBERTs of transformers, with random weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.models.bert.huggingface_folder import WORDS
from tests.models.bert.test_huggingface import BERT_IDS, check, outputs, shaken
from use_st5.trainable_encoder import TrainableEncoder

torch = pytest.importorskip("torch", reason="the extra `peers` is not installed")
transformers = pytest.importorskip("transformers")

SHAPE = {"dim": 24, "n_layers": 3, "n_heads": 4, "hidden_dim": 40, "max_position_embeddings": 9}


@pytest.mark.parametrize("sinusoidal", [False, True])
def test_outputs_and_words(tmp_path: Path, sinusoidal: bool) -> None:
    torch.manual_seed(0)
    config = transformers.DistilBertConfig(**SHAPE, vocab_size=60, sinusoidal_pos_embds=sinusoidal)
    peer = shaken(transformers.DistilBertForMaskedLM(config))
    peer.save_pretrained(tmp_path)
    check(tmp_path, BERT_IDS, *outputs(peer, BERT_IDS, 0))


def test_from_strings(tmp_path: Path) -> None:
    pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")
    torch.manual_seed(0)
    config = transformers.DistilBertConfig(**SHAPE, vocab_size=len(WORDS))
    peer = shaken(transformers.DistilBertModel(config))
    peer.save_pretrained(tmp_path)
    (tmp_path / "vocab.txt").write_text("".join(f"{word}\n" for word in WORDS), encoding="utf-8")
    encoder = TrainableEncoder.load(tmp_path)
    assert encoder.model.config.num_token_types == 0
    # [CLS] the cat ##s . [SEP]
    ids = torch.tensor([[2, 4, 5, 7, 9, 3]])
    with torch.no_grad():
        expected = peer(input_ids=ids).last_hidden_state.mean(dim=1).numpy()
    np.testing.assert_allclose(encoder.encode(["The cats."]), expected, atol=1e-5)


def test_its_classifier_is_refused(tmp_path: Path) -> None:
    """It has a relu; a cross-encoder here has a tanh."""
    config = transformers.DistilBertConfig(**SHAPE, vocab_size=len(WORDS), num_labels=1)
    transformers.DistilBertForSequenceClassification(config).save_pretrained(tmp_path)
    (tmp_path / "vocab.txt").write_text("".join(f"{word}\n" for word in WORDS), encoding="utf-8")
    with pytest.raises(ValueError, match=r"Unknown: classifier.bias, .*pre_classifier.weight"):
        TrainableEncoder.load(tmp_path)
