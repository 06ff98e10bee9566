"""What a table with a row per model and a column per task shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from use_st5.evaluation.report.evaluated import Evaluated, Task, tasks_of


@dataclass(frozen=True)
class ScoreGroup:
    """A table's tasks, their order and what stands beside them.

    Attributes:
        group: The tasks' group.
        order: The tasks of the papers' table, in its order; the group's others follow.
        average: The first of them, whose mean the papers give; it follows them where all of them
            were measured.
        apart: Tasks of the group that are shown in another way.
        only: Whether the tasks of `order` are all that it shows.
        score: Which score it shows; None: each task's main one.
        title: Where a section has several tables.
        suffix: What the tasks' names end in beyond the names in published tables.
        benchmarks: The published tables beside it.
        featured: (model, begin of its settings) of the published rows that everybody should see.
    """

    group: str
    order: tuple[str, ...] = ()
    average: tuple[str, ...] = ()
    apart: tuple[str, ...] = ()
    only: bool = False
    score: str | None = None
    title: str = ""
    suffix: str = ""
    benchmarks: tuple[str, ...] = ()
    featured: tuple[tuple[str, str], ...] = ()

    def tasks(self, models: Sequence[Evaluated]) -> dict[str, Task]:
        """The tasks that are columns: those that at least one model has."""
        found = {
            name: task
            for name, task in tasks_of(models, self.group).items()
            if name not in self.apart and (self.score is None or self.score in task["scores"])
        }
        first = [name for name in self.order if name in found]
        rest = [] if self.only else [name for name in found if name not in self.order]
        return {name: found[name] for name in (*first, *rest)}

    def averaged(self, models: Sequence[Evaluated]) -> bool:
        """Whether the mean is a column: each of its tasks was measured for some model."""
        return bool(self.average) and set(self.average) <= set(self.tasks(models))
