"""What a table with a row per model and a column per task shows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from use_st5.evaluation.report.evaluated import Evaluated, Task, tasks_of
from use_st5.evaluation.report.published_rows import Featured, published_rows
from use_st5.evaluation.report.section import (
    Cell,
    Column,
    Row,
    Table,
    describe,
    mark_best,
    score_cell,
    sentence,
)


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
        overview: What its mean is called in the first table of a report; empty: it is not there.
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
    featured: Featured = ()
    overview: str = ""

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


def score_table(
    models: Sequence[Evaluated], group: ScoreGroup, *, published: bool = True
) -> Table | None:
    """A row per model, a column per task, the mean, and published rows below.

    Returns:
        None where no model has a task of the group.
    """
    tasks = group.tasks(models)
    if not tasks:
        return None
    heads = [Column(task["title"], task["protocol"]) for task in tasks.values()]
    columns = [_column(models, name, group.score) for name in tasks]
    keys = [name.removesuffix(group.suffix) for name in tasks]
    if group.averaged(models):
        place = len(group.average)
        titles = ", ".join(tasks[name]["title"] for name in group.average)
        heads.insert(place, Column("Avg.", f"Mean of {titles}."))
        columns.insert(place, mean_column(models, group.average))
        keys.insert(place, "average")
    beside = published_rows(group.benchmarks if published else (), keys, group.featured)
    return Table(
        caption=_caption(models, tasks, group.score),
        corner="Model",
        columns=tuple(heads),
        rows=(*model_rows(models, columns), *beside.rows),
        more=beside.more,
        notes=(*protocol_notes(tasks), *beside.notes),
        cautions=cautions(models, tasks),
        title=group.title,
    )


def model_rows(models: Sequence[Evaluated], columns: Sequence[Sequence[Cell]]) -> list[Row]:
    """The rows of the models, from columns with a cell per model."""
    return [
        Row(model.name, tuple(column[model.position] for column in columns), model=model.position)
        for model in models
    ]


def mean_column(models: Sequence[Evaluated], names: Sequence[str]) -> list[Cell]:
    """The means of the main scores of tasks, one cell per model."""
    cells = []
    for model in models:
        absent = [name for name in names if model.task(name) is None]
        note = f"not measured: {', '.join(absent)}" if absent else f"of {len(names)} tasks"
        task = model.task(names[0])
        cells.append(score_cell(model.mean(names), task["main"] if task else "", note=note))
    return cells if cautions(models, names) else mark_best(cells)


def task_cell(model: Evaluated, name: str, score: str | None = None) -> Cell:
    """The cell of one score of a task, by default the main one; it tells its sizes on hovering."""
    task = model.task(name)
    if task is None:
        return score_cell(None, "", note=model.record.skipped.get(name, ""))
    score = score or task["main"]
    counts = ", ".join(f"{count:,} {what}" for what, count in task["counts"].items())
    note = f"{task['title']}: {describe(score)}" + (f"; {counts}" if counts else "")
    return score_cell(model.score(name, score), score, note=note.replace("_", " "))


def protocol_notes(tasks: dict[str, Task]) -> list[tuple[str, str]]:
    """(titles, protocol with its options) pairs, each protocol once."""
    titles: dict[str, list[str]] = {}
    for task in tasks.values():
        options = "; ".join(f"{name} = {value}" for name, value in task["options"].items())
        protocol = sentence(task["protocol"]) + (f" Options: {options}." if options else "")
        titles.setdefault(protocol, []).append(task["title"])
    return [(", ".join(names), protocol) for protocol, names in titles.items()]


def cautions(models: Sequence[Evaluated], names: Iterable[str]) -> tuple[str, ...]:
    """Why the models' scores of tasks cannot be compared; empty where they all can."""
    titles: dict[str, list[str]] = {}
    for name in names:
        tasks = [task for model in models if (task := model.task(name))]
        ways = {json.dumps([t["main"], t["protocol"], t["options"]], sort_keys=True) for t in tasks}
        data = {tuple(sorted(task["data"].values())) for task in tasks}
        for variants, what in ((ways, "by different protocols"), (data, "on different data files")):
            if len(variants) > 1:
                titles.setdefault(what, []).append(tasks[0]["title"])
    return tuple(
        f"{', '.join(names)}: the models were measured {what}." for what, names in titles.items()
    )


def _column(models: Sequence[Evaluated], name: str, score: str | None) -> Sequence[Cell]:
    cells = [task_cell(model, name, score) for model in models]
    return cells if cautions(models, [name]) else mark_best(cells)


def _caption(models: Sequence[Evaluated], tasks: dict[str, Task], score: str | None) -> str:
    """Which statistics the table shows, each with the tasks that have it where they differ."""
    titles: dict[str, list[str]] = {}
    for name, first in tasks.items():
        found = {score or task["main"] for model in models if (task := model.task(name))}
        for main in sorted(found):
            titles.setdefault(describe(main), []).append(first["title"])
    if len(titles) == 1:
        (only,) = titles
        return sentence(only)
    return " ".join(f"{', '.join(names)}: {words}." for words, names in titles.items())
