"""What a report holds: at a glance, what each group of tasks shows, and every score."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from use_st5.evaluation.registry import group_sections
from use_st5.evaluation.report.evaluated import Evaluated, tasks_of
from use_st5.evaluation.report.score_table import (
    ScoreGroup,
    mean_column,
    model_rows,
    score_table,
    task_cell,
)
from use_st5.evaluation.report.section import (
    MISSING,
    Cell,
    Column,
    Plot,
    Row,
    Section,
    Table,
    describe,
)

Shown = tuple[Sequence[Table], Sequence[Plot]]


@dataclass(frozen=True)
class GroupSection:
    """What reports show of a group of tasks; the group declares it beside its tasks.

    Attributes:
        name: Its anchor.
        title: Its heading.
        lead: What a reader should know before its numbers.
        scores: Its tables with a row per model and a column per task.
        more: (models, whether with published rows) → further tables, and plots.
        groups: The groups of the tasks it shows → their titles where every score is listed; by
            default the one of its own name.
        details: Name of a task or of a group → the part of its details that is shown, a type that
            msgspec knows; what a record holds is checked against it.
        last: Whether it follows the sections that say how well a task is done.
    """

    name: str
    title: str
    lead: str
    scores: tuple[ScoreGroup, ...] = ()
    more: Callable[[Sequence[Evaluated], bool], Shown] = lambda models, published: ((), ())
    groups: Mapping[str, str] = field(default_factory=dict)
    details: Mapping[str, type] = field(default_factory=dict)
    last: bool = False

    @property
    def titles(self) -> Mapping[str, str]:
        """Group of tasks → its title where every score is listed."""
        return self.groups or {self.name: self.title}

    def of(self, models: Sequence[Evaluated], *, published: bool) -> Section | None:
        """The section; None where no model has what it shows."""
        tables = [score_table(models, group, published=published) for group in self.scores]
        more, plots = self.more(models, published)
        found = (*(table for table in tables if table), *more)
        if not found and not plots:
            return None
        return Section(self.name, self.title, self.lead, found, tuple(plots))


def report_sections(models: Sequence[Evaluated], *, published: bool) -> list[Section]:
    """The parts of the report for which some model has what they show."""
    declared = (section.of(models, published=published) for section in group_sections())
    return [overview_section(models), *filter(None, declared), *_others(models)]


def overview_section(models: Sequence[Evaluated]) -> Section:
    """What the models are, and their means over those tasks of the papers that all of them have."""
    heads = [Column("Dimension"), Column("Tasks")]
    dimensions = (model.record.model["dimension"] for model in models)
    columns = [
        [Cell(MISSING if each is None else f"{each:,}") for each in dimensions],
        [Cell(f"{len(model.record.tasks):,}") for model in models],
    ]
    for group in (group for section in group_sections() for group in section.scores):
        wanted = group.average if group.overview else ()
        shared = [task for task in wanted if all(model.task(task) for model in models)]
        if shared:
            titles = ", ".join(models[0].record.tasks[task]["title"] for task in shared)
            counted = "avg." if len(shared) == len(wanted) else f"{len(shared)} of {len(wanted)}"
            heads.append(Column(f"{group.overview} {counted}", f"Mean of {titles}."))
            columns.append(mean_column(models, shared))
    table = Table(
        caption="Means × 100 over the tasks of the papers’ tables that every model here has; “2 of "
        "7” is a mean of two of seven, which the papers’ averages cannot be compared with.",
        corner="Model",
        columns=tuple(heads),
        rows=tuple(model_rows(models, columns)),
    )
    return Section("overview", "At a glance", "", (table,))


def _others(models: Sequence[Evaluated]) -> list[Section]:
    """Groups that this version does not know, each as a plain table."""
    unknown = (group for group in _groups(models) if group not in _titles())
    return [
        Section(
            f"group-{place}",
            group,
            "Scores of a group that this version of use_st5 has no table for.",
            (table,),
        )
        for place, group in enumerate(unknown)
        if (table := score_table(models, ScoreGroup(group)))
    ]


def every_score(models: Sequence[Evaluated]) -> list[Table]:
    """All scores of all tasks, a table per group with a row per score."""
    titles, tables = _titles(), []
    for group in _groups(models):
        rows = []
        for name, task in tasks_of(models, group).items():
            found = [t for model in models if (t := model.task(name))]
            for score in dict.fromkeys(score for t in found for score in t["scores"]):
                cells = tuple(task_cell(model, name, score) for model in models)
                rows.append(Row(task["title"], cells, detail=describe(score)))
        columns = tuple(Column(model.name, model=model.position) for model in models)
        title = titles.get(group, group)
        tables.append(Table("", "Task", columns, tuple(rows), title=title, long=True))
    return tables


def _groups(models: Sequence[Evaluated]) -> list[str]:
    tasks = (task for model in models for task in model.record.tasks.values())
    return [*dict.fromkeys(task["group"] for task in tasks)]


def _titles() -> dict[str, str]:
    """Group of tasks → its title, for all groups that a section shows."""
    return {group: title for section in group_sections() for group, title in section.titles.items()}
