"""The STS Benchmark by how many words its pairs share."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from use_st5.evaluation.data_folder import DataFolder
from use_st5.evaluation.sts import sources
from use_st5.evaluation.sts.dice import evaluate_by_dice
from use_st5.evaluation.sts.sts_pair import STSPair
from use_st5.evaluation.sts.suite import read_sts
from use_st5.evaluation.task import EvaluationTask, TaskContext
from use_st5.evaluation.task_result import TaskResult


@dataclass(frozen=True)
class STSDiceTask(EvaluationTask):
    """One correlation for each quintile of the Dice coefficient."""

    name = "sts_dice"
    group = "sts"
    title = "STS-B by shared words"
    protocol = (
        "Spearman's correlation of cosine similarity and gold scores for each fifth of the STS "
        "Benchmark (training, development and test pairs together, as in section 3.2 of Tsukagoshi "
        "et al., *SEM 2022), sorted by the Dice coefficient of the pairs' word sets (lower case, "
        "no punctuation), ties in a fixed random order; q1 shares fewest words; mean: of the five. "
        "No held-out score for a model that was trained or chosen on STS-B"
    )
    sources = (sources.STSB_TRAIN, sources.STSB_DEV, sources.STSB_TEST)

    def read(self, data: DataFolder) -> list[STSPair]:
        """The pairs of all three parts."""
        return [pair for source in self.sources for pair in read_sts(data, source).pairs]

    def run(self, context: TaskContext) -> TaskResult:
        """Scores the encoder on each quintile."""
        pairs = self.read(context.data)
        quintiles = evaluate_by_dice(context.embed, pairs)
        scores = {
            f"spearman_q{number}": quintile.spearman
            for number, quintile in enumerate(quintiles, start=1)
        }
        return TaskResult(
            main="spearman_mean",
            scores={"spearman_mean": float(np.mean([*scores.values()])), **scores},
            counts={"pairs": len(pairs)},
            details={"quintiles": [dataclasses.asdict(quintile) for quintile in quintiles]},
        )
