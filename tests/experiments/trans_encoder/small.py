"""Trans-Encoder's experiments in a size for tests.

As a script, it runs the training part of one; a test starts it in a fresh process under JAX.

usage: small.py RUN; the folder holds the prepared data.
"""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

from experiments.trans_encoder.pair_distillation import PairDistillation
from experiments.trans_encoder.train import VARIANTS


def small(name: str) -> PairDistillation:
    """A variant with small batches and short trainings, also for SimCSE."""
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
