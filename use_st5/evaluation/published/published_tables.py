"""The published tables that come with the package."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import replace
from importlib import resources

from use_st5.evaluation.published._reading import read_published
from use_st5.evaluation.published.published_table import PublishedTable

# In the order of the papers' publication.
_FILES = (
    "universal_sentence_encoder.json",
    "trans_encoder.json",
    "sentence_t5.json",
    "sbert_defsent.json",
    "multilingual_sentence_t5.json",
)


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


@functools.cache
def _all_tables() -> tuple[PublishedTable, ...]:
    folder = resources.files(__package__)
    return tuple(table for name in _FILES for table in read_published(folder / name))


def _confirmed(tables: Iterator[PublishedTable]) -> Iterator[PublishedTable]:
    """Leaves the unconfirmed rows out, and tables that have no others."""
    for table in tables:
        rows = tuple(row for row in table.rows if row.confirmed)
        if rows:
            yield replace(table, rows=rows)
