"""What an evaluation task found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class TaskResult:
    """Scores with their names, and what plots need beyond them.

    Attributes:
        main: The name, in `scores`, of the one that tables show.
        scores: Name → value in its natural unit: correlations in −1 … 1, accuracies, F1 and AUC in
            0 … 1, WEAT's effect sizes in standard deviations. NaN where it is undefined. Names say
            the statistic and the aggregation: "spearman_all", "accuracy", "f1".
        counts: Name → number of what was compared: "pairs", "train", "test".
        details: Anything more, as JSON takes it: parts of a set, settings that were chosen.
    """

    main: str
    scores: dict[str, float]
    counts: dict[str, int] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.main not in self.scores:
            raise ValueError(f"main: expected one of {[*self.scores]}, received {self.main!r}.")
