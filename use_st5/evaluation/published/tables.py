"""The tables of results that come with the package: a JSON file per paper, read into types."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from importlib import resources
from importlib.resources.abc import Traversable
from types import MappingProxyType
from typing import Annotated, Literal

import msgspec
from msgspec import structs

from use_st5._records import parse_record

# In the order of the papers' publication.
_FILES = (
    "universal_sentence_encoder.json",
    "trans_encoder.json",
    "sentence_t5.json",
    "sbert_defsent.json",
    "multilingual_sentence_t5.json",
)
# Unit → the largest score; no effect size can be larger than 2.
_LARGEST = {"x100": 100, "1": 2}


class PublishedPaper(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where published results stand.

    Attributes:
        citation: For captions, for example "Ni et al. (2022)".
        title: As printed.
        authors: Their names, separated by commas.
        year: Of publication.
        venue: Of publication, for example "ICLR 2022".
        url: Where it can be read.
        notes: Which tables and figures are not among the data, and why.
    """

    citation: str
    title: str
    authors: str
    year: int
    venue: str
    url: str
    notes: str


class PublishedRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a paper prints for one model.

    Attributes:
        model: Its name in the paper.
        scores: Task → score, in the unit of the table; a task that the paper leaves out is absent.
            "average" is the paper's own, as printed.
        settings: How the model was trained where the name does not tell; may be empty.
        source: Where the scores were read if not in the text of the paper; else empty.
        confirmed: False where nothing but a recollection of the paper supports the scores.
    """

    model: str
    scores: Annotated[Mapping[str, float], msgspec.Meta(min_length=1)]
    settings: str = ""
    source: str = ""
    confirmed: bool = True

    def __post_init__(self) -> None:
        # All readers share the tables.
        structs.force_setattr(self, "scores", MappingProxyType(dict(self.scores)))


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A table as it stands in the file, where the paper stands beside the tables."""

    table: str
    title: str
    benchmark: str
    metric: str
    unit: Literal["x100", "1"]
    notes: str
    rows: Annotated[tuple[PublishedRow, ...], msgspec.Meta(min_length=1)]

    def __post_init__(self) -> None:
        seen: set[tuple[str, str, str]] = set()
        for row in self.rows:
            name = (row.model, row.settings, row.source)
            if name in seen:
                raise ValueError(f"Expected each row once, got {row.model!r} again")
            seen.add(name)
            for task, score in row.scores.items():
                if not abs(score) <= _LARGEST[self.unit]:
                    raise ValueError(
                        f"Expected a number up to {_LARGEST[self.unit]}, got {score} for {task} of "
                        f"{row.model!r}"
                    )


class PublishedTable(_Table, frozen=True, kw_only=True):
    """The rows of one table that share a benchmark and a metric.

    A table of a paper that holds several benchmarks is several of these.

    Attributes:
        paper: Where it stands.
        table: Its number there, for example "Table 2".
        title: What it shows.
        benchmark: The group of tasks, for example "sts".
        metric: The statistic and its aggregation, for example "spearman_all".
        unit: "x100" or "1": what the scores are multiplied by.
        notes: The protocol as the paper tells it, and what is doubtful.
        rows: At least one.
    """

    paper: PublishedPaper


class _File(msgspec.Struct, forbid_unknown_fields=True):
    paper: PublishedPaper
    tables: list[_Table]


def published_tables(
    benchmark: str | None = None, *, unconfirmed: bool = False
) -> tuple[PublishedTable, ...]:
    """Returns what the papers report, in the order of their publication.

    Args:
        benchmark: Only the tables of this benchmark, for example "sts"; None: all.
        unconfirmed: Whether rows come along that nothing but a recollection of the paper supports;
            a report must then say so (`PublishedRow.confirmed`).

    Raises:
        ValueError: No table has this benchmark.
    """
    tables = _all_tables()
    known = {table.benchmark for table in tables}
    if benchmark is not None and benchmark not in known:
        names = ", ".join(sorted(known))
        raise ValueError(f"Expected a benchmark among {names}, received {benchmark!r}.")
    chosen = (table for table in tables if benchmark in (None, table.benchmark))
    return tuple(chosen if unconfirmed else _confirmed(chosen))


def read_published(file: Traversable) -> tuple[PublishedTable, ...]:
    """Reads the tables of one paper: `{"paper": {…}, "tables": [{…, "rows": [{…}]}]}`.

    The keys are the attributes of `PublishedPaper`, `PublishedTable` and `PublishedRow`.

    Raises:
        ValueError: It is no JSON; a key is missing, unknown or of the wrong type; a unit is
            unknown; a table has no rows or a row no scores; a score is no finite number or too
            large for its unit; a row stands twice in a table. The message names file and place.
    """
    content = parse_record(file.read_bytes(), _File, where=file.name, remedy="Install it again.")
    return tuple(
        PublishedTable(paper=content.paper, **structs.asdict(table)) for table in content.tables
    )


@functools.cache
def _all_tables() -> tuple[PublishedTable, ...]:
    folder = resources.files(__package__)
    return tuple(table for name in _FILES for table in read_published(folder / name))


def _confirmed(tables: Iterator[PublishedTable]) -> Iterator[PublishedTable]:
    """Leaves the unconfirmed rows out, and tables that have no others."""
    for table in tables:
        rows = tuple(row for row in table.rows if row.confirmed)
        if rows:
            yield structs.replace(table, rows=rows)
