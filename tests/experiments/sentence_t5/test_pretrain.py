"""Pre-training end to end on a few sentences, and T5's settings."""

from __future__ import annotations

import json
from pathlib import Path

import keras
import numpy as np
import pytest

from experiments.sentence_t5 import pretrain as pretrain_t5
from tests.experiments.sentence_t5.small import SMALL


@pytest.mark.end_to_end
def test_trains_saves_and_is_done(corpora: Path, tmp_path: Path) -> None:
    untrained = SMALL.run(corpora, tmp_path / "short", steps=10)
    assert SMALL.run(corpora, tmp_path / "run", part="prepare") == {}
    scores = SMALL.run(tmp_path / "nowhere", tmp_path / "run", steps=30, part="train")
    assert scores["validation_loss"] < untrained["validation_loss"]
    assert json.loads((tmp_path / "run/scores.json").read_text()) == scores
    model = keras.saving.load_model(tmp_path / "run" / pretrain_t5.MODEL_NAME)
    logits = model({"encoder_ids": np.ones((1, 4), int), "decoder_ids": np.zeros((1, 1), int)})
    assert logits.shape == (1, 1, 32_128)
    # The run is complete: the same command has nothing left to do.
    assert SMALL.run(corpora, tmp_path / "run", steps=30) == scores


def test_the_optimizer_and_the_spans() -> None:
    """Raffel et al. 2020: rate min(0.01, 1/√step), here a line; 15 % of the tokens, spans of 3."""
    optimizer = pretrain_t5.EXPERIMENT.optimizer(1_000)
    assert type(optimizer) is keras.optimizers.Adafactor
    rates = [float(optimizer._learning_rate(step)) for step in (0, 100, 550, 1_000)]
    np.testing.assert_allclose(rates, [0.01, 0.01, 0.005, 0], rtol=1e-5, atol=1e-9)
    corrupted = pretrain_t5.EXPERIMENT.corruption(np.ones((2, 141), np.int32), seed=0)
    lengths = sorted(ids.shape[1] for ids in corrupted.values())
    assert {29, 128} <= set(lengths)
