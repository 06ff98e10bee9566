"""Trans-Encoder's experiments in a size for tests.

As a script, run by a test in a fresh process whose Keras runs on JAX: the training part of one.

usage: small.py RUN; the folder has what was prepared.
"""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

from experiments.trans_encoder.pair_distillation import PairDistillation
from experiments.trans_encoder.train import VARIANTS


def small(name: str) -> PairDistillation:
    """A variant with small batches, short trainings and SimCSE's short."""
    variant = VARIANTS[name]
    settings = variant.settings
    parts = {
        each: dataclasses.replace(
            getattr(settings, each), batch_size=8, epochs=1, steps=4, learning_rate=1e-2
        )
        for each in ("to_cross", "to_bi")
    }
    starts = tuple(
        dataclasses.replace(
            start,
            unsupervised=start.unsupervised
            and dataclasses.replace(start.unsupervised, steps=2, batch_size=4, masked_span=1),
        )
        for start in variant.starts
    )
    return dataclasses.replace(
        variant,
        starts=starts,
        settings=dataclasses.replace(settings, cycles=1, evaluate_every=2, **parts),
        steps_per_execution=2,
    )


if __name__ == "__main__":
    small("mutual").run(Path("nowhere"), Path(sys.argv[1]), part="train")
