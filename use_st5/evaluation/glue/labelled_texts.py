"""Labelled sentences or pairs of sentences of one split."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from use_st5.vector_store import VectorCache


@dataclass(frozen=True)
class LabelledTexts:
    """The rows of one split.

    Attributes:
        columns: The first sentences and, where the task is about pairs, the second ones.
        labels: `[rows]`: class numbers (int64), or scores (float64).
        broken_lines: How many lines of the file were left out because fields were missing.

    Raises:
        ValueError: No rows, or columns of different lengths.
    """

    columns: tuple[list[str], ...]
    labels: np.ndarray
    broken_lines: int = 0

    def __post_init__(self) -> None:
        lengths = {len(column) for column in self.columns}
        if lengths != {len(self.labels)} or not len(self.labels):
            raise ValueError(
                "Expected as many labels as sentences in each column, and at least one; received "
                f"{len(self.labels)} labels and columns of {sorted(lengths)} sentences."
            )

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.labels)

    def rows(self, chosen: np.ndarray) -> LabelledTexts:
        """The rows with these numbers, in this order."""
        columns = tuple([column[row] for row in chosen] for column in self.columns)
        return LabelledTexts(columns, self.labels[chosen], self.broken_lines)

    def embedded(self, embed: VectorCache) -> list[np.ndarray]:
        """The embeddings `[rows, dim]` of each column.

        A sentence without text, as some of QQP's are, is embedded as ".", as in SentEval's
        examples: not every encoder has a vector for nothing.
        """
        return [embed([sentence or "." for sentence in column]) for column in self.columns]
