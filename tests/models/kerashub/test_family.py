"""Tiny text embedders of KerasHub: the tests of every family, and KerasHub's own vectors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

import use_st5
from tests.kerashub_embedders import EMBEDDERS, bert, qwen
from tests.models import family_contract as contract
from use_st5.losses.contrastive_loss import ContrastiveLoss
from use_st5.trainable_encoder import TrainableEncoder
from use_st5.training.arguments import TrainingArguments
from use_st5.training.trainer import Trainer

TEXTS = ["the cat sat", "", "a dog ran on the mat " * 9, "😀 Ünheard [SEP]", b"\xff cat"]


@pytest.fixture(params=EMBEDDERS)
def embedder(request: pytest.FixtureRequest) -> Any:
    """A tiny embedder of each kind."""
    keras.utils.set_random_seed(1)
    return EMBEDDERS[request.param]()


def test_vectors_are_kerashubs(embedder: Any, tmp_path: Path) -> None:
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


def test_it_is_exported_and_adapted(tmp_path: Path) -> None:
    encoder = TrainableEncoder.of_kerashub(bert())
    contract.check_export(encoder, "float32", tmp_path / "model")
    contract.check_adapters(encoder, layers=12)
    contract.check_export(encoder, "float32", tmp_path / "adapted")


def test_another_gets_adapters() -> None:
    contract.check_adapters(TrainableEncoder.of_kerashub(qwen()), layers=14)


def test_it_is_trained(embedder: Any) -> None:
    encoder = TrainableEncoder.of_kerashub(embedder)
    rows = [{"anchor": each, "positive": f"a {each}"} for each in contract.WORDS]
    args = TrainingArguments(learning_rate=0.01, batch_size=8, steps=30, jit_compile=False)
    loss = ContrastiveLoss()
    history = Trainer(encoder, {"pairs": (rows, loss)}, args, progress=False).train()
    losses = [each["loss"] for each in history.records]
    assert losses[-1] < losses[0]


def test_what_is_no_text_embedder_is_refused() -> None:
    alone = bert()
    alone.preprocessor = None
    with pytest.raises(TypeError, match="a preprocessor, received Sequential"):
        TrainableEncoder.of_kerashub(keras.Sequential())
    with pytest.raises(TypeError, match="from_preset makes one"):
        TrainableEncoder.of_kerashub(alone)


@pytest.mark.end_to_end
@pytest.mark.process
def test_a_fresh_process_loads_it(tmp_path: Path, fresh_python: Callable[..., str]) -> None:
    pytest.importorskip("tensorflow_hub", reason="the extra `hub` is not installed")
    encoder = TrainableEncoder.of_kerashub(bert())
    contract.check_fresh_process(encoder, tmp_path / "model", fresh_python)
