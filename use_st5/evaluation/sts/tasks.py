"""The tasks of the group "sts", and what reports show of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from use_st5.data.data_folder import DataFolder, DataSource
from use_st5.evaluation.report import charts
from use_st5.evaluation.report.charts import Axis, Series
from use_st5.evaluation.report.evaluated import Evaluated
from use_st5.evaluation.report.published_rows import ENGLISH
from use_st5.evaluation.report.score_table import ScoreGroup
from use_st5.evaluation.report.section import Plot, hundredfold
from use_st5.evaluation.report.sections import GroupSection
from use_st5.evaluation.report.theme import Theme
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


_AXIS = "Spearman correlation × 100"


def partition_plots(models: Sequence[Evaluated]) -> list[Plot]:
    """The plots for which some model has what they show."""
    return [plot for plot in (_dice_plot(models), _source_plot(models)) if plot]


def _dice_plot(models: Sequence[Evaluated]) -> Plot | None:
    found = [(model, task) for model in models if (task := model.task("sts_dice"))]
    if not found:
        return None
    quintiles = {model.position: task["details"]["quintiles"] for model, task in found}
    series = [
        Series(
            model.name,
            tuple(range(1, len(quintiles[model.position]) + 1)),
            tuple(hundredfold(each["spearman"]) for each in quintiles[model.position]),
            model=model.position,
        )
        for model, _ in found
    ]
    ticks: dict[float, str] = {
        place: f"{each['dice_from']:.2f} to\n{each['dice_to']:.2f}"
        for place, each in enumerate(quintiles[found[0][0].position], start=1)
    }

    def draw(theme: Theme) -> charts.Figure:
        axis = Axis("Dice coefficient of the two sentences’ words", _AXIS)
        return charts.lines(theme, series, axis, ticks)

    return Plot(
        "sts_dice",
        f"{found[0][1]['title']}: from the fifth of the pairs that shares fewest words to the one "
        "that shares most.",
        f"Lines of the {_AXIS} over fifths of the pairs by Dice coefficient, for "
        f"{', '.join(one.label for one in series)}.",
        draw,
        found[0][1]["protocol"],
    )


def _source_plot(models: Sequence[Evaluated]) -> Plot | None:
    found = [(model, task) for model in models if (task := model.task("sts_sources"))]
    if not found:
        return None
    labels = [*dict.fromkeys(name for _, task in found for name in task["details"]["sources"])]
    series = [
        Series(
            model.name,
            tuple(
                hundredfold(task["details"]["sources"].get(name, {}).get("spearman"))
                for name in labels
            ),
            model=model.position,
        )
        for model, task in found
    ]

    def draw(theme: Theme) -> charts.Figure:
        return charts.dots(theme, labels, series, Axis(_AXIS))

    return Plot(
        "sts_sources",
        f"{found[0][1]['title']} of the sentences.",
        f"Dots of the {_AXIS} for {len(labels)} sources of sentences, for "
        f"{', '.join(one.label for one in series)}.",
        draw,
        found[0][1]["protocol"],
    )


class _Quintile(msgspec.Struct):
    dice_from: float
    dice_to: float
    spearman: float | None


class _Quintiles(msgspec.Struct):
    quintiles: list[_Quintile]


class _Source(msgspec.Struct):
    spearman: float | None


class _Sources(msgspec.Struct):
    sources: dict[str, _Source]


_PAPERS = ("sts12", "sts13", "sts14", "sts15", "sts16", "stsb", "sickr")

SECTIONS = (
    GroupSection(
        "sts",
        "Semantic textual similarity",
        "How well the similarity of two embeddings follows the one that people see. Correlations "
        "of different aggregations cannot be compared; each table names its own.",
        scores=(
            ScoreGroup(
                "sts",
                order=_PAPERS,
                average=_PAPERS,
                apart=("sts_sources", "sts_dice"),
                benchmarks=("sts",),
                featured=ENGLISH,
                overview="STS",
            ),
            ScoreGroup(
                "sts",
                order=("stsb_dev", "stsb"),
                only=True,
                score="pearson_angular_all",
                title="The STS Benchmark as in the Universal Sentence Encoder’s paper",
                benchmarks=("stsb_pearson",),
                featured=ENGLISH,
            ),
        ),
        more=lambda models, published: ((), partition_plots(models)),
        details={"sts_dice": _Quintiles, "sts_sources": _Sources},
    ),
)
