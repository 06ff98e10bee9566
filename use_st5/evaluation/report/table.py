"""A table of a report, before it becomes HTML or Markdown."""

from __future__ import annotations

from dataclasses import dataclass

from use_st5.evaluation.report.cell import Cell


@dataclass(frozen=True)
class Column:
    """The head of a column.

    Attributes:
        title: What it holds.
        note: What hovering over it says.
        model: The position of the model whose column it is; None for another column.
    """

    title: str
    note: str = ""
    model: int | None = None


@dataclass(frozen=True)
class Row:
    """A row of a table.

    Attributes:
        label: Its head.
        cells: One per column.
        detail: More about it, in smaller type.
        model: The position of the model whose row it is; None for another row.
        published: Whether its numbers come from a paper.
    """

    label: str
    cells: tuple[Cell, ...]
    detail: str = ""
    model: int | None = None
    published: bool = False


@dataclass(frozen=True)
class Table:
    """A table of a report.

    Attributes:
        caption: What the numbers are, with their unit and aggregation.
        corner: What the heads of the rows are.
        columns: The heads.
        rows: What everybody should see.
        more: Rows for those who ask, published ones beyond the choice.
        notes: (what, text) pairs below the table: protocols, sources.
        cautions: Why numbers of one column cannot be compared; empty where they can.
        title: Where a section has several tables.
        long: Whether it is left out where a reader wants the main tables alone.
    """

    caption: str
    corner: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    more: tuple[Row, ...] = ()
    notes: tuple[tuple[str, str], ...] = ()
    cautions: tuple[str, ...] = ()
    title: str = ""
    long: bool = False

    def __post_init__(self) -> None:
        for row in (*self.rows, *self.more):
            if len(row.cells) != len(self.columns):
                raise ValueError(
                    f"{row.label}: expected {len(self.columns)} cells, received {len(row.cells)}."
                )
