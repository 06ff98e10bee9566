"""The main tables of a report as GitHub Markdown, for READMEs and model cards."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from use_st5.evaluation.record import EvaluationRecord
from use_st5.evaluation.report.evaluated import evaluated_models, one_line
from use_st5.evaluation.report.section import Cell, Row, Table
from use_st5.evaluation.report.sections import report_sections

# What Markdown, or HTML in it, would take for more than text; an underscore within a word is none.
_SPECIAL = re.compile(r"([\\`*{}\[\]<>|~#&$]|(?<![^\W_])_|_(?![^\W_]))")


def markdown_tables(records: Sequence[EvaluationRecord], *, published: bool = True) -> str:
    """Writes the main tables of a report as GitHub Markdown.

    Args:
        records: As for `write_report`.
        published: Whether to show the papers' published rows beside the models.

    Raises:
        ValueError: There are no records, or two of one name.
    """
    models = evaluated_models(records)
    lines: list[str] = []
    for section in report_sections(models, published=published):
        for table in section.tables:
            if not table.long:
                title = f"{section.title}: {table.title}" if table.title else section.title
                lines += [f"### {_escape(title)}", "", *_table(table), ""]
    return "\n".join(lines)


def _table(table: Table) -> Iterator[str]:
    yield _escape(table.caption)
    for text in table.cautions:
        yield ""
        yield f"**Not comparable.** {_escape(text)}"
    yield ""
    yield _line([table.corner, *(column.title for column in table.columns)])
    yield "|".join(["", " :--- ", *[" ---: "] * len(table.columns), ""])
    for row in table.rows:
        yield f"| {_head(row)} | {' | '.join(map(_cell, row.cells))} |"


def _line(texts: Sequence[str]) -> str:
    return f"| {' | '.join(map(_escape, texts))} |"


def _head(row: Row) -> str:
    detail = f"published: {row.detail}" if row.published else row.detail
    return _escape(f"{row.label} ({detail})" if detail else row.label)


def _cell(cell: Cell) -> str:
    text = f"**{_escape(cell.text)}**" if cell.best else _escape(cell.text)
    return f"{text} ({_escape(cell.small)})" if cell.small else text


def _escape(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", one_line(text))
