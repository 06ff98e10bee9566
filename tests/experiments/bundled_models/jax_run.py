"""Run by a test in a fresh process whose Keras runs on JAX: a bundled model's training.

usage: jax_run.py RUN; the folder holds the prepared data and the teachers' vectors.
"""

from __future__ import annotations

import sys
from pathlib import Path

from experiments.bundled_models import use_dan_en
from experiments.bundled_models.word_vocabulary import VocabularySettings
from tests.experiments.bundled_models.small_trainings import TEXT, small_training

SMALL = small_training(
    use_dan_en.EXPERIMENT,
    TEXT,
    {"short": (1, 4, 5), "long": (5, 9, 12)},
    vocabulary=VocabularySettings(60, 40, 5),
)


if __name__ == "__main__":
    # The training part needs neither the corpora nor a tokenizer.
    SMALL.run(Path("nowhere"), Path(sys.argv[1]), steps=40, part="train")
