"""The tasks of the group "sts"."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np

from use_st5.evaluation.data_folder import DataFolder, DataSource
from use_st5.evaluation.sts.protocol import evaluate_by_dice, evaluate_sts, subset_details
from use_st5.evaluation.sts.readers import (
    SICK_TEST,
    STS12,
    STS13,
    STS14,
    STS15,
    STS16,
    STSB_DEV,
    STSB_TEST,
    STSB_TRAIN,
    STSPair,
    STSSet,
    read_sts,
)
from use_st5.evaluation.task import EvaluationTask, TaskContext, TaskResult


@dataclass(frozen=True)
class STSTask(EvaluationTask):
    """Correlations of one set in all aggregations.

    Attributes:
        name: What `--tasks` takes.
        source: The set; one that `read_sts` knows.
    """

    name: str
    source: DataSource

    group = "sts"
    protocol = (
        "Correlation of the embeddings' cosine similarity with the gold scores, nothing trained; "
        "all: over all pairs at once (SimCSE, Sentence-T5), mean: of the subsets' correlations, "
        "wmean: of these weighted by their pairs (SemEval); pearson_angular_all: with the angular "
        "similarity of Eq. 1 of the USE paper"
    )

    @property
    def title(self) -> str:
        """The set's name."""
        return self.source.name

    @property
    def sources(self) -> tuple[DataSource, ...]:
        """The set alone."""
        return (self.source,)

    def read(self, data: DataFolder) -> STSSet:
        """The set."""
        return read_sts(data, self.source)

    def run(self, context: TaskContext) -> TaskResult:
        """Scores the encoder; subsets are SemEval's files or the STS Benchmark's genres."""
        data = self.read(context.data)
        cosine, angular = evaluate_sts(context.embed, data, metrics=("cosine", "angular"))
        scores = {
            f"{statistic}_{aggregation}": values[aggregation]
            for statistic, values in (("spearman", cosine.spearman), ("pearson", cosine.pearson))
            for aggregation in ("all", "mean", "wmean")
        }
        scores["pearson_angular_all"] = angular.pearson["all"]
        return TaskResult(
            main="spearman_all",
            scores=scores,
            counts={"pairs": cosine.pairs},
            details={"subsets": subset_details(data, cosine)},
        )


@dataclass(frozen=True)
class STSSourcesTask(EvaluationTask):
    """One correlation for each source of sentences, 24 where all five sets are there."""

    name = "sts_sources"
    group = "sts"
    title = "STS12-16 by source"
    protocol = (
        "Spearman's correlation of cosine similarity and gold scores for each source of STS12 to "
        "STS16, as in section 3.1 of Tsukagoshi et al. (*SEM 2022); mean: of the sources in the "
        "data folder, unweighted; the five sets have the 24 of the paper's Table 1"
    )
    optional_sources = (STS12, STS13, STS14, STS15, STS16)

    def read(self, data: DataFolder) -> list[STSSet]:
        """The sets that are there; each has the name of its source."""
        return [read_sts(data, source) for source in self.used_sources(data)]

    def run(self, context: TaskContext) -> TaskResult:
        """Scores the encoder on each subset of the sets that are in the data folder."""
        by_source: dict[str, dict[str, Any]] = {}
        for data in self.read(context.data):
            (score,) = evaluate_sts(context.embed, data)
            for subset, values in subset_details(data, score).items():
                # The paper's Table 1 names the surprise sources of 2012 without that word.
                by_source[f"{data.name} {subset.removeprefix('surprise.')}"] = values
        return TaskResult(
            main="spearman_mean",
            scores={
                f"{statistic}_mean": float(
                    np.mean([each[statistic] for each in by_source.values()])
                )
                for statistic in ("spearman", "pearson")
            },
            counts={
                "sources": len(by_source),
                "pairs": sum(each["pairs"] for each in by_source.values()),
            },
            details={"sources": by_source},
        )


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
    sources = (STSB_TRAIN, STSB_DEV, STSB_TEST)

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


TASKS = (
    STSTask("sts12", STS12),
    STSTask("sts13", STS13),
    STSTask("sts14", STS14),
    STSTask("sts15", STS15),
    STSTask("sts16", STS16),
    STSTask("stsb_dev", STSB_DEV),
    STSTask("stsb", STSB_TEST),
    STSTask("sickr", SICK_TEST),
    STSSourcesTask(),
    STSDiceTask(),
)
