"""STS12 to STS16 by the sources of their sentences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from use_st5.evaluation.data_folder import DataFolder
from use_st5.evaluation.sts import sources
from use_st5.evaluation.sts.protocol import evaluate_sts, subset_details
from use_st5.evaluation.sts.sts_set import STSSet
from use_st5.evaluation.sts.suite import read_sts
from use_st5.evaluation.task import EvaluationTask, TaskContext
from use_st5.evaluation.task_result import TaskResult


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
    optional_sources = (sources.STS12, sources.STS13, sources.STS14, sources.STS15, sources.STS16)

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
