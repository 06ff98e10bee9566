"""The recipes of T5 and Sentence-T5 in a size for tests."""

from __future__ import annotations

import dataclasses

from experiments.sentence_t5 import pretrain as pretrain_t5
from experiments.sentence_t5 import two_stage as sentence_t5
from experiments.sentence_t5.span_corruption import SpanCorruption
from use_st5.training.recipe import Recipe

# A T5 of 8 dimensions.
SMALL = dataclasses.replace(
    pretrain_t5.RECIPE,
    config=dataclasses.replace(
        pretrain_t5.RECIPE.config, num_layers=1, hidden_dim=8, num_heads=1, num_decoder_layers=1
    ),
    corruption=SpanCorruption(20),
    batch_size=8,
    dtype="float32",
)


def small_nli() -> Recipe:
    """The second stage alone, ten steps of it."""
    stage = sentence_t5.triplets(steps=10, batch_size=8, pieces=2, learning_rate=1e-3)
    return dataclasses.replace(sentence_t5.RECIPE, stages=(stage,))
