"""WEAT and SEAT as evaluation tasks, and what reports show of them: effect sizes with intervals."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from use_st5.bias.weat import WEATTest, read_weat, run_weat, weat_tests
from use_st5.data.data_folder import DataFolder, DataSource
from use_st5.evaluation.report import charts
from use_st5.evaluation.report.charts import Axis, Series
from use_st5.evaluation.report.evaluated import Evaluated, Task, tasks_of
from use_st5.evaluation.report.published_rows import Notes, PublishedEffects, published_effects
from use_st5.evaluation.report.score_table import cautions, protocol_notes, task_cell
from use_st5.evaluation.report.section import (
    Cell,
    Column,
    Plot,
    Row,
    Table,
    number,
    probability,
    score_cell,
)
from use_st5.evaluation.report.sections import GroupSection, Shown
from use_st5.evaluation.report.theme import Theme
from use_st5.evaluation.task import EvaluationTask, TaskContext, TaskResult

_STATISTICS = (
    "Effect size d (standard deviation of all targets), one-sided permutation p with ties counted, "
    "95 % percentile bootstrap over the targets"
)
# Name of the task without "seat" → name of the file, in the order of the paper's tables. Of the
# double bind test the sentences of which each holds one word, and the "unbleached" ones.
_SEAT_FILES = {name.removeprefix("weat"): f"sent-{name}" for name in weat_tests()} | {
    "_angry_black_woman": "sent-angry_black_woman_stereotype",
    "_angry_black_woman_b": "sent-angry_black_woman_stereotype_b",
    "_double_bind_competent": "sent-heilman_double_bind_competent_one_word",
    "_double_bind_competent_unbleached": "heilman_double_bind_competent_one_sentence",
    "_double_bind_likable": "sent-heilman_double_bind_likable_one_word",
    "_double_bind_likable_unbleached": "heilman_double_bind_likable_one_sentence",
}


@dataclass(frozen=True)
class BiasTask(EvaluationTask):
    """An association test: of the package's word lists, or of a file of the sent-bias toolkit.

    Attributes:
        test: The test itself, where it is neither; None: the package's or the file's.
        ddof: See `use_st5.bias.weat.run_weat`.
        samples: See there.
        resamples: See there.
    """

    name: str
    group: str
    title: str
    protocol: str
    sources: tuple[DataSource, ...] = ()
    test: WEATTest | None = None
    ddof: int = 1
    samples: int = 100_000
    resamples: int = 10_000

    def options(self) -> dict[str, Any]:
        """The settings that change the outcome, as JSON takes them."""
        options = {"ddof": self.ddof, "samples": self.samples, "resamples": self.resamples}
        if self.test is None:
            return options
        groups = {letter: [*getattr(self.test, letter)] for letter in "xyab"}
        return {**options, "texts": groups}

    def read(self, data: DataFolder) -> WEATTest | None:
        """The test of the file; None where the package brings the word lists."""
        return read_weat(data.find(self.sources[0])) if self.sources else None

    def run(self, context: TaskContext) -> TaskResult:
        """Tests the encoder.

        Raises:
            MissingDataError: The file of the test is not in the data folder.
            ValueError: It is not in its format, or the encoder gives something unusable.
        """
        test = self.test or self.read(context.data) or weat_tests()[self.name]
        result = run_weat(
            context.embed,
            test,
            ddof=self.ddof,
            samples=self.samples,
            resamples=self.resamples,
            seed=context.seed,
        )
        scores = ("effect_size", "effect_size_low", "effect_size_high", "p_value")
        return TaskResult(
            main="effect_size",
            scores={name: getattr(result, name) for name in scores},
            counts={
                "targets": len(test.x),
                "attributes_a": len(test.a),
                "attributes_b": len(test.b),
                "partitions": result.partitions,
            },
            details={
                "categories": [*test.categories],
                "exact": result.exact,
                "ddof": self.ddof,
                "interval": "percentile bootstrap over targets, 95 %",
            },
        )


def _weat(name: str) -> BiasTask:
    origin = "May et al. 2019" if name.endswith("b") else "Caliskan et al. 2017"
    return BiasTask(
        name=name,
        group="weat",
        title=name.replace("weat", "WEAT"),
        protocol=f"{_STATISTICS}; word lists of {origin}.",
    )


def _seat(name: str, file: str) -> BiasTask:
    title = f"SEAT{name.replace('_', ' ')}"
    return BiasTask(
        name=f"seat{name}",
        group="seat",
        title=title,
        protocol=f"{_STATISTICS}, each sentence taken as independent; May et al. 2019.",
        sources=(
            DataSource(
                name=title,
                places=(f"{file}.jsonl",),
                origin="the folder tests of https://github.com/W4ngatang/sent-bias",
                licence="CC BY-NC 4.0",
            ),
        ),
    )


def own_test(path: Path) -> BiasTask:
    """A test of one's own words, by the name of their file.

    Args:
        path: See `use_st5.bias.read_weat`.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It is in another format, or has the name of a published test.
    """
    test = read_weat(path)
    name = re.sub(r"\W+", "_", test.name)
    if name in {task.name for task in TASKS}:
        raise ValueError(
            f"{path}: expected another name than {name}, which is that of a published test. Rename "
            "the file."
        )
    return BiasTask(
        name=name,
        group="weat",
        title=test.name,
        protocol=f"{_STATISTICS}; word lists of one's own.",
        test=test,
    )


TASKS = (
    *(_weat(name) for name in weat_tests()),
    *(_seat(name, file) for name, file in _SEAT_FILES.items()),
)


_GROUPS = {"weat": "Words (WEAT)", "seat": "Words in sentences (SEAT)"}
_WORDS = re.compile("(?<=[a-z])(?=[A-Z])")


def _shown(models: Sequence[Evaluated], published: bool) -> Shown:
    """The tests, a row each, and their plots."""
    tables, plots = [], []
    for group, title in _GROUPS.items():
        if tests := tasks_of(models, group):
            beside, notes = published_effects("weat", [*tests]) if published else ([], ())
            tables.append(_table(models, title, tests, beside, notes))
            plots.append(_plot(models, group, tests, beside))
    return tables, plots


def _table(
    models: Sequence[Evaluated],
    title: str,
    tests: dict[str, Task],
    beside: Sequence[PublishedEffects],
    notes: Notes,
) -> Table:
    rows = (
        Row(task["title"], _cells(models, name, beside), detail=" × ".join(_categories(task)))
        for name, task in tests.items()
    )
    return Table(
        title=title,
        caption="Effect size d, its 95 % bootstrap interval, and the one-sided p.",
        corner="Test",
        columns=(
            *(Column(model.name, model=model.position) for model in models),
            *(Column(f"{one.label} (published)", one.source) for one in beside),
        ),
        rows=tuple(rows),
        notes=(*protocol_notes(tests), *notes),
        cautions=cautions(models, tests),
    )


def _cells(
    models: Sequence[Evaluated], test: str, beside: Sequence[PublishedEffects]
) -> tuple[Cell, ...]:
    cells = []
    for model in models:
        cell = task_cell(model, test, "effect_size")
        if cell.state == "value":
            ends = _interval(model, test)
            parts = [f"{number(ends[0], 2)} to {number(ends[1], 2)}"] if ends else []
            parts.append(probability(model.score(test, "p_value")))
            cell = dataclasses.replace(cell, small="; ".join(filter(None, parts)))
        cells.append(cell)
    for one in beside:
        effect, p = one.effects.get(test, (None, None))
        cells.append(score_cell(effect, "effect_size", small=probability(p), note="published"))
    return tuple(cells)


def _interval(model: Evaluated, test: str) -> tuple[float, float] | None:
    """The ends of the interval; None where there is none."""
    low, high = (model.score(test, f"effect_size_{end}") for end in ("low", "high"))
    if low is None or high is None or math.isnan(low) or math.isnan(high):
        return None
    return low, high


def _categories(task: Task) -> list[str]:
    """The targets and the attributes in words; empty where the test does not name them."""
    # The sent-bias files write them as one word each: EuropeanAmericanNames.
    names = [_WORDS.sub(" ", name) for name in task["details"].get("categories", ())]
    return [f"{names[0]} / {names[1]}", f"{names[2]} / {names[3]}"] if names else []


def _plot(
    models: Sequence[Evaluated],
    group: str,
    tests: dict[str, Task],
    beside: Sequence[PublishedEffects],
) -> Plot:
    labels = ["\n".join([task["title"], *_categories(task)]) for task in tests.values()]
    series = [_series(model, tests) for model in models]
    series += [
        Series(
            f"{one.label} (published)",
            tuple(one.effects.get(test, (math.nan, None))[0] for test in tests),
            rank=rank,
        )
        for rank, one in enumerate(beside)
    ]

    def draw(theme: Theme) -> charts.Figure:
        return charts.bars(theme, labels, series, Axis("effect size d"))

    names = ", ".join(one.label for one in series)
    return Plot(
        group,
        f"{_GROUPS[group]}: effect sizes with their 95 % intervals. To the right of 0, the first "
        "targets are nearer to the first attributes.",
        f"Bars of the effect sizes of {len(tests)} tests for {names}; the table has the numbers.",
        draw,
    )


def _series(model: Evaluated, tests: dict[str, Task]) -> Series:
    values = [model.score(test, "effect_size") for test in tests]
    spread = [_interval(model, test) or (math.nan, math.nan) for test in tests]
    return Series(
        model.name,
        tuple(math.nan if value is None else value for value in values),
        spread=tuple(spread),
        model=model.position,
    )


class _Categories(msgspec.Struct):
    categories: list[str] = []

    def __post_init__(self) -> None:
        if len(self.categories) not in (0, 4):
            raise ValueError("Expected four categories or none")


SECTIONS = (
    GroupSection(
        "bias",
        "Associations that may be bias (WEAT, SEAT)",
        "The effect size d says how much nearer the first targets are to the first attributes than "
        "the second targets are, in standard deviations; p is one-sided. An interval that excludes "
        "0 shows an association. A high p does not show that an encoder is free of bias: the test "
        "finds associations, it cannot rule them out.",
        more=_shown,
        groups={"weat": "WEAT", "seat": "SEAT"},
        details={"weat": _Categories, "seat": _Categories},
        last=True,
    ),
)
