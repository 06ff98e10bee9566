"""One STS set as an evaluation task."""

from __future__ import annotations

from dataclasses import dataclass

from use_st5.evaluation.data_folder import DataFolder
from use_st5.evaluation.data_source import DataSource
from use_st5.evaluation.sts.protocol import evaluate_sts, subset_details
from use_st5.evaluation.sts.sts_set import STSSet
from use_st5.evaluation.sts.suite import read_sts
from use_st5.evaluation.task import EvaluationTask, TaskContext
from use_st5.evaluation.task_result import TaskResult


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
