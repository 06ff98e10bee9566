"""The Tatoeba test set as an evaluation task, and what reports show of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

import msgspec
import numpy as np

from use_st5._records import Count
from use_st5.data.data_folder import DataFolder, DataSource
from use_st5.evaluation.report import charts
from use_st5.evaluation.report.charts import Axis, Series
from use_st5.evaluation.report.evaluated import Evaluated
from use_st5.evaluation.report.published_rows import MULTILINGUAL, published_rows
from use_st5.evaluation.report.score_table import (
    cautions,
    model_rows,
    protocol_notes,
    task_cell,
)
from use_st5.evaluation.report.section import (
    Cell,
    Column,
    Plot,
    Row,
    Table,
    describe,
    hundredfold,
    mark_best,
    score_cell,
)
from use_st5.evaluation.report.sections import GroupSection
from use_st5.evaluation.report.theme import Theme
from use_st5.evaluation.task import EvaluationTask, TaskContext, TaskResult
from use_st5.evaluation.tatoeba.protocol import evaluate_tatoeba
from use_st5.evaluation.tatoeba.readers import GROUPS, LANGUAGES, ParallelSentences, read_tatoeba

TATOEBA = DataSource(
    "Tatoeba",
    ("data/tatoeba/v1", "tatoeba/v1"),
    "the folder data/tatoeba/v1 of https://github.com/facebookresearch/LASER",
    "CC BY 2.0 FR",
)


@dataclass(frozen=True)
class TatoebaTask(EvaluationTask):
    """Accuracies of each language and their means over 14, 36 and 112 languages."""

    name = "tatoeba"
    group = "tatoeba"
    title = "Tatoeba"
    protocol = (
        "Accuracy of the nearest sentence by cosine among at most 1,000 of its language (LASER's "
        "test set), unweighted mean over languages: 36 are XTREME's, 14 those of them in XNLI, "
        "112 LASER's; from_english: the queries are English (XTREME), to_english: they are "
        "foreign, neither: the mean of both (m-ST5)"
    )
    sources = (TATOEBA,)

    def read(self, data: DataFolder) -> list[ParallelSentences]:
        """The pairs of each language."""
        folder = data.find(TATOEBA)
        return [read_tatoeba(folder, code) for code in LANGUAGES]

    def run(self, context: TaskContext) -> TaskResult:
        """Scores the encoder in all 112 languages."""
        data = context.progress.track(self.read(context.data), self.title)
        languages = evaluate_tatoeba(context.embed, data)
        scores = {}
        for size, group in GROUPS.items():
            members = [languages[code] for code in group]
            scores[f"accuracy_{size}"] = _mean(member.mean for member in members)
            scores[f"accuracy_{size}_to_english"] = _mean(member.to_english for member in members)
            scores[f"accuracy_{size}_from_english"] = _mean(
                member.from_english for member in members
            )
        details = {code: {"name": LANGUAGES[code], **asdict(languages[code])} for code in LANGUAGES}
        pairs = sum(score.pairs for score in languages.values())
        return TaskResult("accuracy_36", scores, {"pairs": pairs}, {"languages": details})


def _mean(values: Iterable[float]) -> float:
    return float(np.mean([*values]))


TASKS = (TatoebaTask(),)


_TASK = "tatoeba"
_DIRECTIONS = {"to_english": "to English", "from_english": "from English"}

# Beyond this a plot is taller than anybody reads.
_MOST_ROWS = 60

Languages = dict[str, dict]


def tatoeba_tables(models: Sequence[Evaluated], *, published: bool) -> list[Table]:
    """The means over groups of languages, and the languages one by one, the easiest first."""
    tasks = [task for model in models if (task := model.task(_TASK))]
    if not tasks:
        return []
    warnings = cautions(models, [_TASK])
    notes = tuple(protocol_notes({_TASK: tasks[0]}))
    return [_means(models, notes, warnings, published), _by_language(models, warnings)]


def tatoeba_plots(models: Sequence[Evaluated]) -> list[Plot]:
    """A row of dots per language; of many languages several plots, to stand side by side."""
    if not any(model.task(_TASK) for model in models):
        return []
    codes = _sorted_codes(models)
    parts = math.ceil(len(codes) / _MOST_ROWS)
    size = math.ceil(len(codes) / parts)
    return [
        _plot(models, codes[part * size : (part + 1) * size], part, parts) for part in range(parts)
    ]


def _plot(models: Sequence[Evaluated], codes: Sequence[str], part: int, parts: int) -> Plot:
    series = [
        Series(
            model.name,
            tuple(hundredfold(_both(_languages(model).get(code))) for code in codes),
            model=model.position,
        )
        for model in models
        if model.task(_TASK)
    ]
    names = _names(models)

    def draw(theme: Theme) -> charts.Figure:
        labels = [names[code] for code in codes]
        axis = Axis("accuracy × 100, mean of both directions", ends=(-3, 103))
        return charts.dots(theme, labels, series, axis)

    place = f", part {part + 1} of {parts}" if parts > 1 else ""
    return Plot(
        f"tatoeba_{part + 1}" if parts > 1 else "tatoeba",
        f"Accuracy by language, the mean of both directions{place}.",
        f"Dots of accuracy for {len(codes)} languages for "
        f"{', '.join(one.label for one in series)}; the table has the numbers.",
        draw,
    )


def _means(
    models: Sequence[Evaluated],
    notes: tuple[tuple[str, str], ...],
    warnings: tuple[str, ...],
    published: bool,
) -> Table:
    """A column per mean; the papers name the languages' number alone."""
    found = [task for model in models if (task := model.task(_TASK))]
    scores = [*dict.fromkeys(name for task in found for name in task["scores"])]
    columns = []
    for score in scores:
        cells = [task_cell(model, _TASK, score) for model in models]
        columns.append(cells if warnings else mark_best(cells))
    keys = [score.replace("accuracy", _TASK) for score in scores]
    beside = published_rows((_TASK,) if published else (), keys, MULTILINGUAL)
    return Table(
        caption="Accuracy × 100, means over so many languages and, unless one is named, both ways.",
        corner="Model",
        columns=tuple(Column(_short(score), describe(score)) for score in scores),
        rows=(*model_rows(models, columns), *beside.rows),
        more=beside.more,
        notes=(*notes, *beside.notes),
        cautions=warnings,
    )


def _short(score: str) -> str:
    """For example "36, to English"."""
    size, _, direction = score.removeprefix("accuracy_").partition("_")
    words = _DIRECTIONS.get(direction, direction.replace("_", " "))
    return f"{size}, {words}" if words else size


def _by_language(models: Sequence[Evaluated], warnings: tuple[str, ...]) -> Table:
    names = _names(models)
    columns = [
        Column(f"{model.name}, {words}") for words in _DIRECTIONS.values() for model in models
    ]
    rows = [
        Row(names[code], tuple(_cells(models, code, bool(warnings))), detail=code)
        for code in _sorted_codes(models)
    ]
    return Table(
        title="Tatoeba by language",
        caption="Accuracy × 100, the language with the highest mean first.",
        corner="Language",
        columns=tuple(columns),
        rows=tuple(rows),
        cautions=warnings,
        long=True,
    )


def _cells(models: Sequence[Evaluated], code: str, apart: bool) -> list[Cell]:
    cells: list[Cell] = []
    for direction in _DIRECTIONS:
        row = [_cell(_languages(model).get(code), direction) for model in models]
        cells += row if apart else mark_best(row)
    return cells


def _cell(language: dict | None, direction: str) -> Cell:
    if language is None:
        return score_cell(None, "accuracy")
    value = language[direction]
    note = f"{language['pairs']:,} pairs"
    return score_cell(math.nan if value is None else value, "accuracy", note=note)


def _languages(model: Evaluated) -> Languages:
    task = model.task(_TASK)
    return task["details"]["languages"] if task else {}


def _names(models: Sequence[Evaluated]) -> dict[str, str]:
    return {
        code: language["name"] for model in models for code, language in _languages(model).items()
    }


def _sorted_codes(models: Sequence[Evaluated]) -> list[str]:
    """The languages by the mean of all models, downwards; those of one mean by their name."""
    names = _names(models)

    def mean(code: str) -> float:
        values = [_both(_languages(model).get(code)) for model in models]
        known = [value for value in values if value is not None]
        return sum(known) / len(known) if known else -math.inf

    return sorted(names, key=lambda code: (-mean(code), names[code], code))


def _both(language: dict | None) -> float | None:
    if language is None or None in (values := [language[key] for key in _DIRECTIONS]):
        return None
    return sum(values) / len(values)


class _Language(msgspec.Struct):
    name: str
    pairs: Count
    to_english: float | None
    from_english: float | None


class _Languages(msgspec.Struct):
    languages: dict[str, _Language]


SECTIONS = (
    GroupSection(
        "tatoeba",
        "Finding translations (Tatoeba)",
        "How often the nearest sentence of the other language is the translation.",
        more=lambda models, published: (
            tatoeba_tables(models, published=published),
            tatoeba_plots(models),
        ),
        details={"tatoeba": _Languages},
    ),
)
