"""One task of pair classification by AUC."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from use_st5.evaluation.data_folder import DataFolder, DataSource
from use_st5.evaluation.glue.labelled_texts import LabelledTexts
from use_st5.evaluation.glue.pair_auc import pair_auc, without_first
from use_st5.evaluation.glue.table_layout import TableLayout
from use_st5.evaluation.task import EvaluationTask, TaskContext, TaskResult


@dataclass(frozen=True)
class PairTask(EvaluationTask):
    """Cosine of a pair against its binary label (Trans-Encoder, section 3 and table 15).

    Attributes:
        name: "pairs_…".
        title: For people.
        source: The file.
        layout: Its columns.
        positive: The class whose pairs should be the most similar ones.
        split: Which pairs they are, for people.
        skipped: So many pairs at the beginning of the file are left out.
    """

    name: str
    title: str
    source: DataSource
    layout: TableLayout
    positive: str
    split: str
    skipped: int = 0
    group = "pairs"

    @property
    def sources(self) -> tuple[DataSource, ...]:
        """The one file."""
        return (self.source,)

    @property
    def protocol(self) -> str:
        """What is computed."""
        return (
            "area under the ROC curve of the cosine of the two embeddings, positive class "
            f"“{self.positive}”, {self.split} (Trans-Encoder, section 3)"
        )

    def options(self) -> dict[str, Any]:
        """The positive class and the split."""
        return {"positive": self.positive, "split": self.split, "skipped": self.skipped}

    def read(self, data: DataFolder) -> LabelledTexts:
        """The pairs that count."""
        pairs = self.layout.read(data.find(self.source))
        return without_first(pairs, self.skipped) if self.skipped else pairs

    def run(self, context: TaskContext) -> TaskResult:
        """Evaluates.

        Raises:
            MissingDataError: The file is not there.
            ValueError: It is not in its layout, or the encoder gives something unusable.
        """
        pairs = self.read(context.data)
        positive = self.layout.classes.index(self.positive)
        return TaskResult(
            "auc",
            {"auc": pair_auc(context.embed, pairs, positive=positive)},
            {
                "pairs": len(pairs),
                "positive": int((pairs.labels == positive).sum()),
                "broken_lines": pairs.broken_lines,
            },
        )
