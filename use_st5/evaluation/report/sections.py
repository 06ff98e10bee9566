"""What a report shows of each group of tasks: tables, plots, and every score."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from use_st5.evaluation.report.plots import (
    Plot,
    bias_plot,
    categories,
    dice_plot,
    geometry_plots,
    interval,
    language_names,
    languages,
    sorted_codes,
    source_plot,
    tatoeba_plots,
)
from use_st5.evaluation.report.tables import (
    MISSING,
    Cell,
    Column,
    Evaluated,
    Row,
    Table,
    Task,
    cautions,
    describe,
    mark_best,
    mean_column,
    model_rows,
    number,
    probability,
    protocol_notes,
    score_cell,
    score_table,
    task_cell,
    tasks_of,
)

# The tasks of the papers' tables, in their order; the papers print the mean of them.
_STS = ("sts12", "sts13", "sts14", "sts15", "sts16", "stsb", "sickr")
_TRANSFER = ("mr", "cr", "subj", "mpqa", "sst2", "trec", "mrpc")
_PROBING = tuple(
    f"probing_{name}"
    for name in (
        *("length", "word_content", "depth", "top_constituents", "bigram_shift", "tense"),
        *("subject_number", "object_number", "odd_man_out", "coordination_inversion"),
    )
)
_BUCC = tuple(f"bucc_{language}-en" for language in ("de", "fr", "ru", "zh"))
_XSTS = ("xsts_ar-ar", "xsts_ar-en", "xsts_es-es", "xsts_es-en", "xsts_tr-en")
_TRACKS = (*_XSTS, "xsts_es-en-wmt", "xsts_en-en")
_MONOLINGUAL = ("jsts", "korsts", "sts_zh")

# Mean in the first table of a report → its tasks.
_OVERVIEW = {
    "STS": _STS,
    "Transfer": _TRANSFER,
    "Transfer (scikit-learn)": tuple(f"{name}_sklearn" for name in _TRANSFER),
    "Probing": _PROBING,
    "Probing (hidden layer)": tuple(f"{name}_mlp" for name in _PROBING),
    "BUCC": _BUCC,
    "XSTS": _XSTS,
}
# Group → its title where every score is listed.
_TITLES = {
    "sts": "Semantic textual similarity",
    "senteval": "Transfer (SentEval)",
    "senteval_sklearn": "Transfer (SentEval, scikit-learn)",
    "probing": "Probing (SentEval)",
    "probing_mlp": "Probing (SentEval, one hidden layer)",
    "sentglue": "SentGLUE",
    "pairs": "Pair classification",
    "tatoeba": "Finding translations (Tatoeba)",
    "bucc": "Mining translations (BUCC)",
    "multilingual_sts": "Similarity in other languages",
    "geometry": "Alignment and uniformity",
    "weat": "WEAT",
    "seat": "SEAT",
}
_DIRECTIONS = {"to_english": "to English", "from_english": "from English"}
_GEOMETRY = {
    "alignment_above_4": "Alignment, positives > 4 (ST5)",
    "alignment_from_4": "Alignment, positives ≥ 4 (SimCSE)",
    "uniformity": "Uniformity",
}
_BIAS = {"weat": "Words (WEAT)", "seat": "Words in sentences (SEAT)"}


@dataclass(frozen=True)
class Section:
    """A part of a report.

    Attributes:
        name: Its anchor.
        title: Its heading.
        lead: What a reader should know before its numbers.
        tables: Its tables.
        plots: Its plots.
    """

    name: str
    title: str
    lead: str
    tables: tuple[Table, ...] = ()
    plots: tuple[Plot, ...] = ()


def report_sections(models: Sequence[Evaluated]) -> list[Section]:
    """The parts of the report for which some model has what they show."""
    unknown = [group for group in _groups(models) if group not in _TITLES]
    others = (
        _section(
            f"group-{place}",
            group,
            "Scores of a group that this version of use_st5 has no table for.",
            [score_table(models, group)],
        )
        for place, group in enumerate(unknown)
    )
    declared = (*_similarity(models), *_classification(models), *_languages_of(models))
    return [
        overview_section(models),
        *(section for section in (*declared, _geometry(models), _bias(models), *others) if section),
    ]


def overview_section(models: Sequence[Evaluated]) -> Section:
    """What the models are, and their means over those tasks of the papers that all of them have."""
    heads = [Column("Dimension"), Column("Tasks")]
    dimensions = (model.record.model["dimension"] for model in models)
    columns = [
        [Cell(MISSING if each is None else f"{each:,}") for each in dimensions],
        [Cell(f"{len(model.record.tasks):,}") for model in models],
    ]
    for name, wanted in _OVERVIEW.items():
        shared = [task for task in wanted if all(model.task(task) for model in models)]
        if shared:
            titles = ", ".join(models[0].record.tasks[task]["title"] for task in shared)
            counted = "avg." if len(shared) == len(wanted) else f"{len(shared)} of {len(wanted)}"
            heads.append(Column(f"{name} {counted}", f"Mean of {titles}."))
            columns.append(mean_column(models, shared))
    table = Table(
        caption="Means × 100 over the tasks of the papers’ tables that every model here has; “2 of "
        "7” is a mean of two of seven, which the papers’ averages cannot be compared with.",
        corner="Model",
        columns=tuple(heads),
        rows=tuple(model_rows(models, columns)),
    )
    return Section("overview", "At a glance", "", (table,))


def every_score(models: Sequence[Evaluated]) -> list[Table]:
    """All scores of all tasks, a table per group with a row per score."""
    tables = []
    for group in _groups(models):
        rows = []
        for name, task in tasks_of(models, group).items():
            found = [t for model in models if (t := model.task(name))]
            for score in dict.fromkeys(score for t in found for score in t["scores"]):
                cells = tuple(task_cell(model, name, score) for model in models)
                rows.append(Row(task["title"], cells, detail=describe(score)))
        columns = tuple(Column(model.name, model=model.position) for model in models)
        title = _TITLES.get(group, group)
        tables.append(Table("", "Task", columns, tuple(rows), title=title, long=True))
    return tables


def _groups(models: Sequence[Evaluated]) -> list[str]:
    tasks = (task for model in models for task in model.record.tasks.values())
    return [*dict.fromkeys(task["group"] for task in tasks)]


def _section(
    name: str,
    title: str,
    lead: str,
    tables: Iterable[Table | None],
    plots: Iterable[Plot | None] = (),
) -> Section | None:
    """The section; None where there is nothing to show."""
    shown = tuple(filter(None, tables)), tuple(filter(None, plots))
    return Section(name, title, lead, *shown) if any(shown) else None


def _similarity(models: Sequence[Evaluated]) -> list[Section | None]:
    apart = ("sts_sources", "sts_dice")
    return [
        _section(
            "sts",
            _TITLES["sts"],
            "How well the similarity of two embeddings follows the one that people see. "
            "Correlations of different aggregations cannot be compared; each table names its own.",
            [
                score_table(models, "sts", order=_STS, average=_STS, apart=apart),
                score_table(
                    models,
                    "sts",
                    order=("stsb_dev", "stsb"),
                    only=True,
                    score="pearson_angular_all",
                    title="The STS Benchmark as in the Universal Sentence Encoder’s paper",
                ),
            ],
            [dice_plot(models), source_plot(models)],
        )
    ]


def _classification(models: Sequence[Evaluated]) -> list[Section | None]:
    def transfer(suffix: str, title: str) -> Table | None:
        names = tuple(name + suffix for name in _TRANSFER)
        order = (*names, f"sst5{suffix}", f"sicke{suffix}")
        return score_table(models, f"senteval{suffix}", order=order, average=names, title=title)

    def probing(suffix: str, title: str) -> Table | None:
        names = tuple(name + suffix for name in _PROBING)
        return score_table(models, f"probing{suffix}", order=names, average=names, title=title)

    return [
        _section(
            "senteval",
            _TITLES["senteval"],
            "How well a small classifier on the frozen embeddings does a task that the encoder was "
            "not trained for.",
            [
                transfer("", "The original classifier"),
                transfer("_sklearn", "scikit-learn's classifier"),
            ],
        ),
        _section(
            "probing",
            _TITLES["probing"],
            "Which properties of a sentence can be read off its embedding.",
            [probing("", "Logistic regression"), probing("_mlp", "One hidden layer")],
        ),
        # No mean: the paper's own is of no choice of its printed cells that is known.
        _section(
            "sentglue",
            _TITLES["sentglue"],
            "GLUE’s tasks with a classifier on the frozen embeddings.",
            [score_table(models, "sentglue")],
        ),
        _section(
            "pairs",
            _TITLES["pairs"],
            "How well the similarity of two embeddings tells related pairs from others.",
            [score_table(models, "pairs")],
        ),
    ]


def _languages_of(models: Sequence[Evaluated]) -> list[Section | None]:
    group = "multilingual_sts"
    return [
        _section(
            "tatoeba",
            _TITLES["tatoeba"],
            "How often the nearest sentence of the other language is the translation.",
            _tatoeba_tables(models),
            tatoeba_plots(models),
        ),
        _section(
            "bucc",
            _TITLES["bucc"],
            "How many of the translations in two texts are found, and how many of the found are "
            "translations.",
            [score_table(models, "bucc", order=_BUCC, average=_BUCC)],
        ),
        _section(
            group,
            _TITLES[group],
            "Semantic textual similarity within and across languages.",
            [
                score_table(
                    models,
                    group,
                    order=_TRACKS,
                    average=_XSTS,
                    only=True,
                    title="Across languages (XSTS)",
                ),
                score_table(
                    models, group, order=_MONOLINGUAL, only=True, title="Within one language"
                ),
                score_table(
                    models,
                    group,
                    apart=(*_TRACKS, *_MONOLINGUAL),
                    title="The translated STS Benchmark",
                ),
            ],
        ),
    ]


def _tatoeba_tables(models: Sequence[Evaluated]) -> list[Table]:
    """The means over groups of languages, and the languages one by one, the easiest first."""
    tasks = [task for model in models if (task := model.task("tatoeba"))]
    if not tasks:
        return []
    warnings = cautions(models, ["tatoeba"])
    notes = tuple(protocol_notes({"tatoeba": tasks[0]}))
    return [_tatoeba_means(models, notes, warnings), _by_language(models, warnings)]


def _tatoeba_means(
    models: Sequence[Evaluated],
    notes: tuple[tuple[str, str], ...],
    warnings: tuple[str, ...],
) -> Table:
    """A column per mean; the papers name the languages' number alone."""
    found = [task for model in models if (task := model.task("tatoeba"))]
    scores = [*dict.fromkeys(name for task in found for name in task["scores"])]
    columns = []
    for score in scores:
        cells = [task_cell(model, "tatoeba", score) for model in models]
        columns.append(cells if warnings else mark_best(cells))
    return Table(
        caption="Accuracy × 100, means over so many languages and, unless one is named, both ways.",
        corner="Model",
        columns=tuple(Column(_short(score), describe(score)) for score in scores),
        rows=tuple(model_rows(models, columns)),
        notes=notes,
        cautions=warnings,
    )


def _short(score: str) -> str:
    """For example "36, to English"."""
    size, _, direction = score.removeprefix("accuracy_").partition("_")
    words = _DIRECTIONS.get(direction, direction.replace("_", " "))
    return f"{size}, {words}" if words else size


def _by_language(models: Sequence[Evaluated], warnings: tuple[str, ...]) -> Table:
    names = language_names(models)
    columns = [
        Column(f"{model.name}, {words}") for words in _DIRECTIONS.values() for model in models
    ]
    rows = [
        Row(names[code], tuple(_language_cells(models, code, bool(warnings))), detail=code)
        for code in sorted_codes(models)
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


def _language_cells(models: Sequence[Evaluated], code: str, apart: bool) -> list[Cell]:
    cells: list[Cell] = []
    for direction in _DIRECTIONS:
        row = [_language_cell(languages(model).get(code), direction) for model in models]
        cells += row if apart else mark_best(row)
    return cells


def _language_cell(language: dict | None, direction: str) -> Cell:
    if language is None:
        return score_cell(None, "accuracy")
    value = language[direction]
    note = f"{language['pairs']:,} pairs"
    return score_cell(math.nan if value is None else value, "accuracy", note=note)


def _geometry(models: Sequence[Evaluated]) -> Section | None:
    """Both measures as a table and as a point per model."""
    tasks = tasks_of(models, "geometry")
    if "geometry" not in tasks:
        return None
    warnings = cautions(models, ["geometry"])
    columns = []
    for score in _GEOMETRY:
        cells = [task_cell(model, "geometry", score) for model in models]
        columns.append(cells if warnings else mark_best(cells, higher=False))
    table = Table(
        caption="Alignment and uniformity; of both, less is better.",
        corner="Model",
        columns=tuple(Column(title) for title in _GEOMETRY.values()),
        rows=tuple(model_rows(models, columns)),
        notes=tuple(protocol_notes(tasks)),
        cautions=warnings,
    )
    return _section(
        "geometry",
        _TITLES["geometry"],
        "Alignment is the mean squared distance of pairs that mean the same; uniformity says how "
        "evenly all sentences spread over the sphere (Wang and Isola, 2020). A good encoder is "
        "low in both.",
        [table],
        geometry_plots(models),
    )


def _bias(models: Sequence[Evaluated]) -> Section | None:
    """The tests, a row each, and their plots."""
    tables, plots = [], []
    for group, title in _BIAS.items():
        if tests := tasks_of(models, group):
            tables.append(_bias_table(models, title, tests))
            plots.append(bias_plot(models, group, tests))
    return _section(
        "bias",
        "Associations that may be bias (WEAT, SEAT)",
        "The effect size d says how much nearer the first targets are to the first attributes than "
        "the second targets are, in standard deviations; p is one-sided. An interval that excludes "
        "0 shows an association. A high p does not show that an encoder is free of bias: the test "
        "finds associations, it cannot rule them out.",
        tables,
        plots,
    )


def _bias_table(models: Sequence[Evaluated], title: str, tests: dict[str, Task]) -> Table:
    rows = (
        Row(
            task["title"],
            tuple(_bias_cell(model, name) for model in models),
            detail=" × ".join(categories(task)),
        )
        for name, task in tests.items()
    )
    return Table(
        title=title,
        caption="Effect size d, its 95 % bootstrap interval, and the one-sided p.",
        corner="Test",
        columns=tuple(Column(model.name, model=model.position) for model in models),
        rows=tuple(rows),
        notes=tuple(protocol_notes(tests)),
        cautions=cautions(models, tests),
    )


def _bias_cell(model: Evaluated, test: str) -> Cell:
    cell = task_cell(model, test, "effect_size")
    if cell.state != "value":
        return cell
    ends = interval(model, test)
    parts = [f"{number(ends[0], 2)} to {number(ends[1], 2)}"] if ends else []
    parts.append(probability(model.score(test, "p_value")))
    return dataclasses.replace(cell, small="; ".join(filter(None, parts)))
