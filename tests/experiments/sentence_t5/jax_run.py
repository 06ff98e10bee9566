"""Run by a test in a fresh process whose Keras runs on JAX: the training parts of two experiments.

usage: jax_run.py RUNS; the folder holds the prepared data.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.experiments.sentence_t5.small import SMALL, small_nli


def main(runs: Path) -> None:
    """Trains a T5 and then a Sentence-T5 from it, without the corpora."""
    nowhere = Path("nowhere")
    SMALL.run(nowhere, runs / "pretrain_t5", steps=10, part="train")
    small_nli().run(nowhere, runs / "sentence_t5", part="train")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
