"""A report as an HTML page that needs no other file, and as Markdown."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path

from use_st5._files import atomic_path
from use_st5._imports import require
from use_st5.evaluation.record import EvaluationRecord
from use_st5.evaluation.report.charts import png
from use_st5.evaluation.report.tables import (
    Section,
    Table,
    check_names,
    name_of,
    report_sections,
)

# What Markdown, or HTML in it, would take for more than text; an underscore within a word is none.
_SPECIAL = re.compile(r"([\\`*{}\[\]<>|~#&$]|(?<![^\W_])_|_(?![^\W_]))")
_ADDRESS = re.compile(r"https?://[^\s<>\"']*[^\s<>\"'.,;:)\]]")
_STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 76rem; margin: 0 auto; padding: 1rem; }
.scroll { overflow-x: auto; max-height: 80vh; }
table { border-collapse: collapse; margin: .5rem 0; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .7rem; border-bottom: 1px solid #8885; text-align: right; }
th:first-child { text-align: left; position: sticky; left: 0; background: Canvas; }
.best { font-weight: bold; }
.plots { display: flex; flex-wrap: wrap; gap: 1rem; }
figure { margin: 0; max-width: 30rem; }
img { width: 100%; }
.caution { border-left: 4px solid #d55e00; padding-left: .7rem; }
code { overflow-wrap: anywhere; }
"""


def write_report(records: Sequence[EvaluationRecord], folder: str | os.PathLike[str]) -> list[Path]:
    """Compares models in one HTML page, with its plots as PNG files beside it.

    The page needs no other file and no network; the files of the plots are for other documents.
    Older files of the same names in the folder are replaced, others stay.

    Args:
        records: What `use-st5 evaluate` wrote, one per model, in the order to show them.
        folder: Where to write; it is created where it does not exist.

    Returns:
        The paths of what was written: `report.html` in the folder, then the plots.

    Raises:
        ValueError: There are no records, or two of one name.
        ImportError: matplotlib is missing.
    """
    check_names(records)
    require("matplotlib", "evaluation")
    sections = report_sections(records)
    images = {plot.name: png(plot.draw()) for section in sections for plot in section.plots}
    contents = {"report.html": html_page(records, sections, images).encode()}
    contents |= {f"{name}.png": image for name, image in images.items()}
    paths = [Path(folder, name) for name in contents]
    for path, content in zip(paths, contents.values(), strict=True):
        with atomic_path(path) as temporary:
            temporary.write_bytes(content)
    return paths


def html_page(
    records: Sequence[EvaluationRecord],
    sections: Sequence[Section],
    images: Mapping[str, bytes],
) -> str:
    """The page.

    Args:
        records: What is compared.
        sections: Its parts.
        images: Name of a plot → its PNG.
    """
    alone = len(records) == 1
    title = name_of(records[0]) if alone else f"{len(records)} sentence encoders compared"
    links = "".join(f'<li><a href="#{_id(s)}">{escape(s.title)}</a></li>' for s in sections)
    body = "\n".join(line for section in sections for line in _section(section, images))
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{escape(title)}</h1>\n<p>How well sentence encoders embed, by the protocols of the "
        "papers. The best number of a column is bold. “–” was not measured; “undefined” has no "
        f"value.</p>\n<nav><ul>{links}</ul></nav>\n{body}\n{_not_measured(records)}\n"
        f"{_how_to_repeat(records)}\n</body>\n</html>\n"
    )


def _id(section: Section) -> str:
    """An anchor; a group may have any name."""
    return escape(re.sub(r"[^\w-]+", "-", section.name), quote=True)


def _section(section: Section, images: Mapping[str, bytes]) -> Iterator[str]:
    yield f'<section>\n<h2 id="{_id(section)}">{escape(section.title)}</h2>'
    if section.lead:
        yield f"<p>{escape(section.lead)}</p>"
    for table in section.tables:
        shown = "\n".join(_html_table(table))
        if table.long:
            shown = f"<details><summary>{escape(table.title)}</summary>\n{shown}\n</details>"
        elif table.title:
            shown = f"<h3>{escape(table.title)}</h3>\n{shown}"
        yield shown
    if section.plots:
        yield '<div class="plots">'
        for plot in section.plots:
            data = base64.b64encode(images[plot.name]).decode("ascii")
            caption = escape(plot.caption)
            yield (
                f'<figure><img src="data:image/png;base64,{data}" alt="{caption}">'
                f"<figcaption>{caption}</figcaption></figure>"
            )
        yield "</div>"
    yield "</section>"


def _html_table(table: Table) -> Iterator[str]:
    yield f"<p>{escape(table.caption)}</p>"
    for text in table.cautions:
        yield f'<p class="caution"><strong>Not comparable.</strong> {escape(text)}</p>'
    heads = "".join(f'<th scope="col">{escape(head)}</th>' for head in (table.corner, *table.heads))
    yield f'<div class="scroll"><table>\n<thead><tr>{heads}</tr></thead>\n<tbody>'
    for name, cells in table.rows:
        shown = "".join(
            f'<td class="best">{escape(cell.text)}</td>'
            if cell.best
            else f"<td>{escape(cell.text)}</td>"
            for cell in cells
        )
        yield f'<tr><th scope="row">{escape(name)}</th>{shown}</tr>'
    yield "</tbody>\n</table></div>"
    if table.notes:
        notes = "".join(f"<li>{_linked(note)}</li>" for note in table.notes)
        yield f"<details><summary>Protocols and sources</summary><ul>{notes}</ul></details>"


def _linked(text: str) -> str:
    """The text, escaped, with its web addresses as links."""
    parts, end = [], 0
    for found in _ADDRESS.finditer(text):
        address = escape(found[0])
        parts += [escape(text[end : found.start()]), f'<a href="{address}">{address}</a>']
        end = found.end()
    return "".join([*parts, escape(text[end:])])


def _not_measured(records: Sequence[EvaluationRecord]) -> str:
    """What was left out and why, each reason once for the same models."""
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
        f"<dt>{escape(', '.join(tasks))} ({escape(models)})</dt><dd>{_linked(why)}</dd>"
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
            f"<details><summary>Data files and their SHA-256</summary><ul>{hashes}</ul></details>"
        )
    return f'<section><h2 id="repeat">How to repeat this</h2>{"".join(parts)}</section>'


def markdown_tables(records: Sequence[EvaluationRecord]) -> str:
    """Writes the main tables of a report as GitHub Markdown.

    Args:
        records: As for `write_report`.

    Raises:
        ValueError: There are no records, or two of one name.
    """
    check_names(records)
    lines: list[str] = []
    for section in report_sections(records):
        for table in section.tables:
            if not table.long:
                title = f"{section.title}: {table.title}" if table.title else section.title
                lines += [f"### {_plain(title)}", "", *_markdown_table(table), ""]
    return "\n".join(lines)


def _markdown_table(table: Table) -> Iterator[str]:
    yield _plain(table.caption)
    for text in table.cautions:
        yield f"\n**Not comparable.** {_plain(text)}"
    yield f"\n| {' | '.join(map(_plain, (table.corner, *table.heads)))} |"
    yield "|".join(["", " :--- ", *[" ---: "] * len(table.heads), ""])
    for name, cells in table.rows:
        shown = (f"**{_plain(c.text)}**" if c.best else _plain(c.text) for c in cells)
        yield f"| {' | '.join([_plain(name), *shown])} |"


def _plain(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))
