"""A part of a report: what it shows, in tables and plots."""

from __future__ import annotations

from dataclasses import dataclass

from use_st5.evaluation.report.charts import Draw
from use_st5.evaluation.report.table import Table


@dataclass(frozen=True)
class Plot:
    """A plot of a report.

    Attributes:
        name: The name of its file, without ".png".
        caption: What it shows and how to read it.
        alt: The same for who cannot see it.
        draw: Draws it in the colours of a theme.
        protocol: How its numbers were computed, where no table beside it says so.
    """

    name: str
    caption: str
    alt: str
    draw: Draw
    protocol: str = ""


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
