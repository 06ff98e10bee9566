"""Tiny text embedders of KerasHub, compared with KerasHub's own vectors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

import use_st5
from tests.kerashub_embedders import EMBEDDERS, bert
from tests.toy_encoders import Toy
from use_st5.losses.contrastive_loss import ContrastiveLoss
from use_st5.models.kerashub.family import KerasHubEncoder
from use_st5.models.lora import apply_lora
from use_st5.trainable_encoder import TrainableEncoder
from use_st5.training.arguments import TrainingArguments
from use_st5.training.trainer import Trainer

TEXTS = ["the cat sat", "", "a dog ran on the mat " * 9, "😀 Ünheard [SEP]", b"\xff cat"]


@pytest.mark.parametrize("name", EMBEDDERS)
def test_vectors_are_kerashubs_and_it_is_trained(name: str, tmp_path: Path) -> None:
    keras.utils.set_random_seed(1)
    embedder = EMBEDDERS[name]()
    texts = [text for text in TEXTS if isinstance(text, str)]
    expected = np.asarray(embedder(embedder.preprocessor(texts)))
    encoder = TrainableEncoder.of_kerashub(embedder)
    np.testing.assert_allclose(encoder.encode(texts), expected, atol=1e-5)
    encoder.export(tmp_path / "model")
    exported = use_st5.load(tmp_path / "model")
    found = exported.encode(texts, on_truncation="ignore", batch_size=2)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert exported.truncated(texts).tolist() == [2]
    assert np.isfinite(exported.encode(TEXTS, on_truncation="ignore")).all()
    rows = [{"anchor": each, "positive": f"a {each}"} for each in texts[0].split() + ["on", "mat"]]
    args = TrainingArguments(learning_rate=0.01, batch_size=5, steps=30, jit_compile=False)
    tasks: dict[str, Any] = {"pairs": (rows, ContrastiveLoss())}
    history = Trainer(encoder, tasks, args, progress=False).train()
    losses = [each["loss"] for each in history.records]
    assert losses[-1] < losses[0]
    assert len(apply_lora(encoder.model, targets="all_linear", rank=1).layers) in (12, 14)


def test_an_adapted_one_is_exported(toy_kerashub: Toy, tmp_path: Path) -> None:
    encoder = TrainableEncoder.load(toy_kerashub.folder)
    adapters = apply_lora(encoder.model, rank=2)
    for tensor in adapters.tensors.values():
        tensor.assign(tensor + 0.1)
    vectors = encoder.encode(TEXTS)
    adapters.merge()
    encoder.export(tmp_path / "adapted")
    again = TrainableEncoder.load(tmp_path / "adapted")
    np.testing.assert_allclose(again.encode(TEXTS), vectors, atol=1e-5)


def test_what_is_no_text_embedder_is_refused(toy_kerashub: Toy) -> None:
    alone = bert()
    alone.preprocessor = None
    for embedder in (alone, keras.Sequential()):
        with pytest.raises(TypeError, match="with a preprocessor"):
            TrainableEncoder.of_kerashub(embedder)
    config = toy_kerashub.model.get_config()
    config["embedder"] = {**config["embedder"], "kind": "BertTokenizer"}
    with pytest.raises(ValueError, match="the name of a TextEmbedder"):
        KerasHubEncoder.from_config(config)
