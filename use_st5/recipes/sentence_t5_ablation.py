"""Sentence-T5 raw, on inference triplets, and on answers before them: Table 3 of the paper.

    use-st5 train pretrain_t5 --data DATA --out runs/pretrain_t5
    use-st5 train sentence_t5_ablation --data DATA --out runs/sentence_t5_ablation

The six rows of Ni et al. 2021, Table 3, on one pre-trained T5, with three seeds each. `table.md`
gives mean and standard deviation over the seeds on the development split of the STS Benchmark.
Runs that are complete are not repeated.
"""

from __future__ import annotations

from pathlib import Path

from use_st5.recipes import sentence_t5
from use_st5.recipes._ablation import ablate

# Row: (stages, pooling).
ROWS = {
    "raw_first": ((), "first"),
    "raw_mean": ((), "mean"),
    "raw_decoder": ((), "decoder"),
    "nli_mean": (("nli",), "mean"),
    "nli_decoder": (("nli",), "decoder"),
    "qa_nli_mean": (("qa", "nli"), "mean"),
}


def run(
    data: Path,
    output: Path,
    *,
    seed: int = 0,
    steps: int | None = None,
    resume: bool = True,
    pretrained: Path | None = None,
) -> dict[str, float]:
    """Runs every row with every seed and writes the table.

    Args:
        data: Folder of the corpora.
        output: Folder of the runs and the table.
        seed: The first of the three seeds.
        steps: Optimizer steps of each stage; those of `sentence_t5` by default.
        resume: Whether runs that are complete or interrupted are kept.
        pretrained: Folder that `pretrain_t5` wrote; `pretrain_t5` beside `output` by default.

    Returns:
        Mean score by "row/score".
    """
    pretrained = pretrained or output.parent / "pretrain_t5"

    def train(row: str, folder: Path, each: int) -> None:
        stages, pooling = ROWS[row]
        sentence_t5.run(
            data,
            folder,
            seed=each,
            steps=steps,
            resume=resume,
            stages=stages,
            pooling=pooling,
            pretrained=pretrained,
        )

    return ablate(ROWS, train, output, seed=seed, steps=steps, resume=resume)
