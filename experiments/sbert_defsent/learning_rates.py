"""The learning rate of SBERT or DefSent on a pre-trained model: three seeds at each, STS-B dev.

    python -m experiments.sbert_defsent.learning_rates --method defsent --data DATA --out runs/rates
    python -m experiments.sbert_defsent.learning_rates --method sbert --model bert_base \
        --pretrained FOLDER

The method is that of Tsukagoshi, Sasano and Takeda (*SEM 2022), appendix A: batches of 16, one
epoch, and the learning rate with the highest mean score on a validation set over three seeds. Here
the score is Spearman's correlation on STS-B dev. The learning rates are 2^(k/2)·1e-6, as for
DefSent's authors; k goes from 0 to 14.

`table.md` has mean and standard deviation of each rate, `chosen.json` the best rate, with which
`python -m experiments.sbert_defsent.train --variant defsent --chosen FILE` trains. `--model` trains
with the paper's settings and data for a model, instead of few steps. Complete runs are kept,
and the same command continues after an interruption.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from experiments.ablation import Ablation
from experiments.command import main
from experiments.minilm import minilm_folder
from experiments.run import Scores, write_json
from experiments.sbert_defsent.train import (
    BATCH_SIZE,
    DEFSENT_STEPS,
    PAIRS,
    PAPER_PAIRS,
    PAPER_WORDS,
    SBERT_STEPS,
    WORDS,
    Pooling,
    Stage,
    Training,
    defsent,
    sbert,
)

Method = Literal["sbert", "defsent"]
Model = Literal["bert_base", "bert_large", "roberta_base", "roberta_large"]
LEARNING_RATES = tuple(2 ** (k / 2) * 1e-6 for k in range(15))
CHOSEN_BY = "stsb_dev_spearman"


def run(
    data: Path,
    output: Path,
    *,
    pretrained: Path | None = None,
    method: Method = "defsent",
    model: Model | None = None,
    pooling: Pooling = "mean",
    seeds: int = 3,
    learning_rates: Sequence[float] = LEARNING_RATES,
    batch_sizes: Sequence[int] = (BATCH_SIZE,),
    **options: Any,
) -> Scores:
    """Trains with every learning rate, batch size and seed, and writes the best combination.

    Args:
        data: Folder of the corpora and of STS-B.
        output: Folder of the runs, the table and the choice.
        pretrained: As for `sbert_defsent`.
        method: The method to train.
        model: Train with the paper's data and steps for this model; None: few steps.
        pooling: Pooling of the vectors.
        seeds: The number of seeds.
        learning_rates: The learning rates to choose among.
        batch_sizes: The batch sizes to choose among.
        **options: `seed` is the first of the seeds. The others are as in `Run`, on one machine.

    Returns:
        Mean score by "learning rate_batch size/score".
    """
    grid = {
        f"{rate:.3g}_{size}": (rate, size)
        for rate, size in itertools.product(learning_rates, batch_sizes)
    }
    rows = {
        name: _training(_stage(method, rate, published=model is not None), size, pooling)
        for name, (rate, size) in grid.items()
    }
    means = Ablation(rows=rows).run(
        data, output, pretrained=minilm_folder(pretrained), seeds=seeds, **options
    )
    best = max(rows, key=lambda name: means[f"{name}/{CHOSEN_BY}"])
    rate, size = grid[best]
    chosen = {"method": method, "learning_rate": rate, "batch_size": size}
    write_json(output / "chosen.json", chosen | {CHOSEN_BY: means[f"{best}/{CHOSEN_BY}"]})
    return means


def _stage(method: Method, rate: float, *, published: bool) -> Stage:
    if method == "sbert":
        pairs = PAPER_PAIRS if published else PAIRS
        return sbert(None if published else SBERT_STEPS, rate, pairs=pairs)
    words = PAPER_WORDS if published else WORDS
    return defsent(None if published else DEFSENT_STEPS, rate, words=words)


def _training(stage: Stage, batch_size: int, pooling: Pooling) -> Training:
    return Training(name=stage.name, stages=(stage.of_size(batch_size),), pooling=pooling)


if __name__ == "__main__":
    main(run)
