"""A report as an HTML page that needs no other file."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from use_st5 import _page
from use_st5._files import atomic_path
from use_st5._page import folded, linked
from use_st5.evaluation.record import EvaluationRecord
from use_st5.evaluation.report.plots import name_of
from use_st5.evaluation.report.tables import (
    Section,
    Table,
    check_names,
    report_sections,
)


def write_report(
    records: Sequence[EvaluationRecord],
    folder: str | os.PathLike[str],
    *,
    baseline: str | None = None,
) -> list[Path]:
    """Compares models in one HTML page.

    The page needs no other file and no network. An older page in the folder is replaced, other
    files stay.

    Args:
        records: Records that `use-st5 evaluate` wrote, one per model, in the order to show them.
        folder: The folder for the page; it is created if it does not exist.
        baseline: The name of the model that the others are compared with; None: the first.

    Returns:
        The path of the written page: `report.html` in the folder.

    Raises:
        ValueError: There are no records, two have the same name, or none has the baseline's name.
    """
    check_names(records)
    page = html_page(records, report_sections(records, baseline))
    path = Path(folder, "report.html")
    with atomic_path(path) as temporary:
        temporary.write_text(page, encoding="utf-8")
    return [path]


def html_page(records: Sequence[EvaluationRecord], sections: Sequence[Section]) -> str:
    """The page of the sections of a report."""
    alone = len(records) == 1
    title = name_of(records[0]) if alone else f"{len(records)} sentence encoders compared"
    links = "".join(f'<a href="#{_id(s)}">{escape(s.title)}</a>' for s in sections)
    body = [f"<p>{escape(_measured(records))}</p>"]
    body += (line for section in sections[:1] for line in _section(section))
    body += [f'<nav aria-label="Sections">{links}</nav>']
    body += (line for section in sections[1:] for line in _section(section))
    body += [_not_measured(records), _how_to_repeat(records)]
    return _page.document(title, "\n".join(body))


def _measured(records: Sequence[EvaluationRecord]) -> str:
    """Sentences that say what the page shows."""
    names = ", ".join(map(name_of, records))
    tasks = {name for record in records for name in record.tasks}
    groups = {task["group"] for record in records for task in record.tasks.values()}
    models = f"{len(records)} sentence encoders, {names}," if len(records) > 1 else names
    were = "were" if len(records) > 1 else "was"
    days = sorted({record.created[:10] for record in records})
    when = " to ".join(dict.fromkeys((days[0], days[-1])))
    best = " The best number of a column is bold." if len(records) > 1 else ""
    return (
        f"{models} {were} measured on {len(tasks):,} tasks of {len(groups)} groups ({when}), by "
        f"the protocols of the papers.{best} “–” means: not measured; “undefined” has no value."
    )


def _id(section: Section) -> str:
    """The anchor of a section; the name of a group may contain any characters."""
    return escape(re.sub(r"[^\w-]+", "-", section.name), quote=True)


def _section(section: Section) -> Iterator[str]:
    yield f'<section>\n<h2 id="{_id(section)}">{escape(section.title)}</h2>'
    if section.lead:
        yield f"<p>{escape(section.lead)}</p>"
    for table in section.tables:
        markup = "\n".join(_html_table(table, section))
        if table.long:
            markup = folded(table.title, markup)
        elif table.title:
            markup = f"<h3>{escape(table.title)}</h3>\n{markup}"
        yield markup
    if section.plots:
        yield '<div class="plots">'
        yield from (_page.figure(plot.svg, plot.caption) for plot in section.plots)
        yield "</div>"
    yield "</section>"


def _html_table(table: Table, section: Section) -> Iterator[str]:
    for text in table.cautions:
        yield f'<p class="caution"><strong>Not comparable.</strong> {escape(text)}</p>'
    yield _page.table(table.corner, table.heads, table.rows, name=table.title or section.title)
    yield f'<p class="muted">{escape(table.caption)}</p>'
    if table.notes:
        notes = "".join(f"<li>{linked(note)}</li>" for note in table.notes)
        yield folded("Protocols and sources", f"<ul>{notes}</ul>")


def _not_measured(records: Sequence[EvaluationRecord]) -> str:
    """The tasks that were not measured, and why; each reason once for the same models."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for task in dict.fromkeys(t for each in records for t in (*each.skipped, *each.failed)):
        names: dict[str, list[str]] = {}
        for record in records:
            if why := record.skipped.get(task) or record.failed.get(task):
                names.setdefault(why, []).append(name_of(record))
        for why, models in names.items():
            reasons.setdefault((why, ", ".join(models)), []).append(task)
    if not reasons:
        return ""
    lines = "".join(
        f"<dt>{escape(', '.join(tasks))} ({escape(models)})</dt><dd>{linked(why)}</dd>"
        for (why, models), tasks in reasons.items()
    )
    return f'<section><h2 id="not-measured">Not measured</h2><dl>{lines}</dl></section>'


def _how_to_repeat(records: Sequence[EvaluationRecord]) -> str:
    """Command, seed, versions and data files of each model."""
    parts = []
    for record in records:
        versions = ", ".join(f"{name} {version}" for name, version in record.versions.items())
        files = sorted({file for task in record.tasks.values() for file in task["data"].items()})
        hashes = "".join(
            f"<li>{escape(path)}: <code>{escape(digest)}</code></li>" for path, digest in files
        )
        parts.append(
            f"<h3>{escape(name_of(record))}</h3><p><code>{escape(record.command)}</code></p>"
            f"<p>Seed {record.seed}, measured {escape(record.created)}; {escape(versions)}. "
            f"Identity: {escape(str(record.model['identity']))}.</p>"
            + folded("Data files and their SHA-256", f"<ul>{hashes}</ul>")
        )
    return f'<section><h2 id="repeat">How to repeat this</h2>{"".join(parts)}</section>'
