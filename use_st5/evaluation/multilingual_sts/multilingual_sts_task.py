"""One multilingual set as an evaluation task."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from use_st5.evaluation.data_folder import DataFolder, DataSource
from use_st5.evaluation.sts import STSPair, evaluate_sts
from use_st5.evaluation.task import EvaluationTask, TaskContext, TaskResult


@dataclass(frozen=True)
class MultilingualSTSTask(EvaluationTask):
    """Correlations over all pairs of a set.

    Attributes:
        name: What `--tasks` takes.
        title: For people.
        languages: Codes (ISO 639-1) of the languages of the first and of the second sentences.
        read_files: The files of `sources`, in their order → pairs.
        sources: One file each.
    """

    name: str
    title: str
    languages: tuple[str, str]
    read_files: Callable[..., list[STSPair]]
    sources: tuple[DataSource, ...]

    group = "multilingual_sts"
    protocol = (
        "Correlation of the embeddings' cosine similarity with the gold scores over all pairs, "
        "nothing trained (m-ST5, sections 4.1 and 4.2)"
    )

    def read(self, data: DataFolder) -> list[STSPair]:
        """The pairs."""
        return self.read_files(*(data.find(source) for source in self.sources))

    def run(self, context: TaskContext) -> TaskResult:
        """Scores the encoder."""
        pairs = self.read(context.data)
        (score,) = evaluate_sts(context.embed, pairs)
        return TaskResult(
            main="spearman_all",
            scores={"spearman_all": score.spearman["all"], "pearson_all": score.pearson["all"]},
            counts={"pairs": score.pairs},
            details={"languages": list(self.languages)},
        )
