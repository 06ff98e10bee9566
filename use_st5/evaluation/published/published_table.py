"""A table of published results."""

from __future__ import annotations

from dataclasses import dataclass

from use_st5.evaluation.published.published_paper import PublishedPaper
from use_st5.evaluation.published.published_row import PublishedRow


@dataclass(frozen=True)
class PublishedTable:
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
    table: str
    title: str
    benchmark: str
    metric: str
    unit: str
    notes: str
    rows: tuple[PublishedRow, ...]
