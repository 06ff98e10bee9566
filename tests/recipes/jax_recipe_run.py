"""Run by a test in a fresh process whose Keras runs on JAX: the training parts of two recipes.

usage: jax_recipe_run.py RUNS; the folder has what was prepared.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.recipes.small_t5 import make_small
from use_st5.recipes import pretrain_t5, sentence_t5


def main(runs: Path) -> None:
    """Trains a T5 and a Sentence-T5 on it, without the corpora."""
    make_small(setattr)
    nowhere = Path("nowhere")
    pretrain_t5.run(nowhere, runs / "pretrain_t5", steps=10, part="train")
    options = {"stages": ("nli",), "settings": {"nli": (10, 8, 2, 1e-3)}}
    sentence_t5.run(nowhere, runs / "sentence_t5", part="train", **options)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
