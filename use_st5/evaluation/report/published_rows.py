"""What the papers published, as rows and columns of a report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from use_st5.evaluation.published.tables import PublishedRow, PublishedTable, published_tables
from use_st5.evaluation.report.section import MISSING, Cell, Row, in_percent, number, sentence

Notes = tuple[tuple[str, str], ...]
Featured = tuple[tuple[str, str], ...]

# How the papers' models were trained, as their rows say it.
SBERT = "fine-tuned on SNLI and MNLI"
NLI = "fine-tuned on NLI"
TWO_STAGES = "fine-tuned on CommunityQA, then NLI"

# (Model, begin of its settings) of the rows that everybody should see: the systems that this
# library builds, at the size that most people run, and the largest.
ENGLISH: Featured = (
    ("USE_T", ""),
    ("USE", ""),
    ("SBERT-NLI", SBERT),
    ("BERT-base DefSent", ""),
    ("SimCSE-BERT", NLI),
    ("SimCSE-BERT-base + TENC (bi)", "bi-encoder"),
    ("ST5-Enc mean", NLI),
    ("ST5-Enc mean", TWO_STAGES),
    ("ST5-Enc mean (11B)", TWO_STAGES),
)
MULTILINGUAL: Featured = (
    ("LaBSE", "supervised by parallel sentences"),
    ("mSimCSE", "full fine-tuning on XNLI"),
    ("m-ST5", "LoRA on all linear layers, XNLI"),
    ("m-ST5", "LoRA on all linear layers, English NLI"),
)


@dataclass(frozen=True)
class PublishedRows:
    """Rows of the papers' tables for a table of this report.

    Attributes:
        rows: Those that everybody should see.
        more: All others with a number in some column.
        notes: (table, what it says about its numbers), for the tables of all rows.
    """

    rows: tuple[Row, ...] = ()
    more: tuple[Row, ...] = ()
    notes: Notes = ()


@dataclass(frozen=True)
class PublishedEffects:
    """The effect sizes of one published model.

    Attributes:
        label: The model.
        source: Where they stand.
        effects: Name of a test → effect size and p, None where p is not published.
    """

    label: str
    source: str
    effects: Mapping[str, tuple[float, float | None]]


def published_rows(
    benchmarks: Iterable[str], keys: Sequence[str], featured: Featured = ()
) -> PublishedRows:
    """The papers' rows for columns.

    Args:
        benchmarks: Of the tables.
        keys: The columns, by the names of the papers' scores; "average" for the mean.
        featured: (model, begin of its settings) of the rows to show, in this order; of several
            rows that agree one.
    """
    rows: list[tuple[PublishedRow, Row]] = []
    notes: list[tuple[str, str]] = []
    for table in (each for name in benchmarks for each in published_tables(name)):
        held = [row for row in table.rows if any(key in row.scores for key in keys)]
        if held:
            text = f"{table.paper.title}, {table.paper.url}. {table.notes}"
            notes += [(_citation(table), text), *_sources(table, held)]
        for published in held:
            row = _row(table, published, keys)
            rows.append((published, row))
    matches = (_best_match(rows, model, settings) for model, settings in featured)
    chosen = [match for match in matches if match]
    more = [row for _, row in rows if not any(row is one for one in chosen)]
    return PublishedRows(tuple(chosen), tuple(more), tuple(notes))


def published_effects(benchmark: str, tests: Sequence[str]) -> tuple[list[PublishedEffects], Notes]:
    """The effect sizes of tests in papers, for a column each, and where they stand."""
    rows = [(table, row) for table in published_tables(benchmark) for row in table.rows]
    p_values = {row.model: row.scores for table, row in rows if table.metric == "p_value"}
    shown = []
    for table, row in rows:
        if table.metric == "effect_size" and set(tests) & set(row.scores):
            p = p_values.get(row.model, {})
            pairs = {test: (value, p.get(test)) for test, value in row.scores.items()}
            source = "; ".join(filter(None, (_citation(table), row.source)))
            shown.append(PublishedEffects(row.model, f"{source}. {table.notes}", pairs))
    return shown, tuple((f"{one.label} (published)", one.source) for one in shown)


def _row(table: PublishedTable, published: PublishedRow, keys: Sequence[str]) -> Row:
    texts = _shown(table, [published.scores.get(key) for key in keys])
    parts = (_citation(table), published.settings)
    cells = tuple(
        Cell(MISSING, note="not published there") if text is None else Cell(text) for text in texts
    )
    return Row(published.model, cells, detail="; ".join(filter(None, parts)), published=True)


def _shown(table: PublishedTable, scores: Sequence[float | None]) -> list[str | None]:
    """The numbers of a row times 100, with as many decimals as the paper prints in that row."""
    shift = 2 if table.unit == "1" and in_percent(table.metric) else 0
    digits = max(len(repr(score).partition(".")[2]) for score in scores if score is not None)
    return [
        None if score is None else number(score * 10**shift, max(digits - shift, 0))
        for score in scores
    ]


def _sources(table: PublishedTable, rows: Sequence[PublishedRow]) -> Notes:
    """Where rows were read that were not read in the paper, each source once."""
    models: dict[str, list[str]] = {}
    for row in rows:
        if row.source:
            models.setdefault(row.source, []).append(row.model)
    return tuple(
        (f"{_citation(table)}: {', '.join(dict.fromkeys(names))}", sentence(source))
        for source, names in models.items()
    )


def _best_match(rows: Sequence[tuple[PublishedRow, Row]], model: str, settings: str) -> Row | None:
    """The first of the model's rows with just these settings, else with most of the columns."""
    alike = [
        (published.settings == settings, _filled(row), row)
        for published, row in rows
        if published.model == model and published.settings.startswith(settings)
    ]
    return max(alike, key=lambda each: each[:2])[2] if alike else None


def _filled(row: Row) -> int:
    return sum(cell.text != MISSING for cell in row.cells)


def _citation(table: PublishedTable) -> str:
    """For example "Ni et al. (2022), Table 3"."""
    return f"{table.paper.citation}, {table.table}"
