"""T5 and Sentence-T5 in a size for tests."""

from __future__ import annotations

import dataclasses

from experiments.sentence_t5 import pretrain as pretrain_t5
from experiments.sentence_t5 import two_stage as sentence_t5
from experiments.sentence_t5.span_corruption import SpanCorruption

# A T5 of 8 dimensions.
SMALL = dataclasses.replace(
    pretrain_t5.EXPERIMENT,
    config=dataclasses.replace(
        pretrain_t5.EXPERIMENT.config, num_layers=1, hidden_dim=8, num_heads=1, num_decoder_layers=1
    ),
    corruption=SpanCorruption(20),
    batch_size=8,
    dtype="float32",
)


def small_nli() -> sentence_t5.TwoStage:
    """The second stage alone, ten steps of it."""
    options = {"steps": 10, "batch_size": 8, "pieces": 2, "learning_rate": 1e-3}
    return sentence_t5.TwoStage(stages=(sentence_t5.stage("nli", sentence_t5.TRIPLETS, **options),))
