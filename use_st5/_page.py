"""Pages of one file: text, tables that sort, plots; they need no network and no other file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

from use_st5 import _svg
from use_st5._progress import without_controls

_ADDRESS = re.compile(r"https?://[^\s<>\"']*[^\s<>\"'.,;:)\]]")
_STYLE = """
:root { font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 66rem; margin: 0 auto; padding: 1rem; }
body { color: var(--ink); background: var(--page); }
h1 { line-height: 1.2; margin: .5rem 0; overflow-wrap: anywhere; }
h2 { margin: 2.2rem 0 .3rem; }
p, li, dd { max-width: 46rem; }
a { color: var(--c0); }
nav { display: flex; flex-wrap: wrap; gap: .2rem 1.1rem; }
nav a { padding: .2rem 0; }
/* A shadow at an edge says that the table goes on there. */
.scroll { overflow-x: auto; background:
  linear-gradient(90deg, var(--page) 1rem, transparent 2rem) local,
  linear-gradient(-90deg, var(--page) 1rem, transparent 2rem) local,
  linear-gradient(90deg, var(--line), transparent .8rem) scroll,
  linear-gradient(-90deg, var(--line), transparent .8rem) scroll; }
table { border-collapse: collapse; margin: .5rem 0; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .7rem; border-bottom: 1px solid var(--line); text-align: right; }
thead th { vertical-align: bottom; }
th:first-child { text-align: left; position: sticky; left: 0; background: var(--page); }
tbody th { font-weight: normal; max-width: 22rem; }
td { white-space: nowrap; }
.text { text-align: left; }
td.text { white-space: normal; max-width: 30rem; }
th button { all: unset; cursor: pointer; font-weight: bold; }
th button:focus-visible { outline: 2px solid var(--c0); outline-offset: 2px; }
th button::after { content: "\\a0↕"; color: var(--muted); }
th[aria-sort=ascending] button::after { content: "\\a0↑"; color: var(--ink); }
th[aria-sort=descending] button::after { content: "\\a0↓"; color: var(--ink); }
.plots { display: flex; flex-wrap: wrap; gap: 1.5rem; margin: 1rem 0; }
figure { margin: 0; flex: 0 1 30rem; min-width: min(100%, 20rem); }
figcaption, .muted { color: var(--muted); font-size: .9rem; }
.caution { border-left: 4px solid var(--c1); padding-left: .7rem; }
summary { cursor: pointer; }
code { overflow-wrap: anywhere; }
@media (max-width: 40rem) {
  table { font-size: .85rem; }
  th, td { padding: .3rem .25rem; }
  tbody th { min-width: 5.5rem; max-width: 8rem; overflow-wrap: anywhere; }
  th:not([aria-sort]) button::after { content: ""; }
}
"""
# The first click sorts the first column in ascending order, the others in descending order. Cells
# without a number stay behind those with one.
_SCRIPT = """
for (const table of document.querySelectorAll("table")) {
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
  if (body.rows.length < 2) continue;
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const before = head.getAttribute("aria-sort");
      const rise = before ? before === "descending" : column === 0;
      for (const each of heads) each.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", rise ? "ascending" : "descending");
      const number = (row) => parseFloat(row.cells[column].dataset.value ?? "");
      const text = (row) => row.cells[column].textContent;
      body.append(...[...body.rows].sort((one, other) => {
        const [a, b] = [number(one), number(other)];
        if (isNaN(a) !== isNaN(b)) return isNaN(a) - isNaN(b);
        const order = isNaN(a) ? text(one).localeCompare(text(other)) : a - b;
        return rise ? order : -order;
      }));
    });
  });
}
"""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


class Cell(NamedTuple):
    """A cell: its text, its number for comparisons (or None), and whether it is bold."""

    text: str
    value: float | None = None
    best: bool = False


def document(title: str, body: str) -> str:
    """Returns a whole page in HTML.

    Args:
        title: The page's title, plain text.
        body: The content after the heading, in HTML.
    """
    return without_controls(
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f"<title>{escape(title)}</title>\n<style>{_svg.STYLE}{_STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{escape(title)}</h1>\n{body}\n<script>{_SCRIPT}</script>\n</body>\n</html>\n"
    )


def table(
    corner: str, heads: Sequence[str], rows: Iterable[tuple[str, Sequence[Cell]]], *, name: str
) -> str:
    """A table in HTML; a script lets the reader sort it.

    Args:
        corner: The heading of the first column.
        heads: The headings of the other columns.
        rows: The first cell of each row, and its other cells. A column in which no row has a
            number is a column of texts.
        name: The name that a screen reader reads for the table.
    """
    rows = list(rows)
    text_columns = {
        column
        for column in range(len(heads))
        if all(cells[column].value is None for _, cells in rows)
    }
    header_cells = [f'<th scope="col">{escape(corner)}</th>']
    for column, head in enumerate(heads):
        kind = ' class="text"' if column in text_columns else ""
        header_cells.append(f'<th scope="col"{kind}>{escape(head)}</th>')
    lines = [
        f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(name)}"><table>',
        f"<thead><tr>{''.join(header_cells)}</tr></thead>\n<tbody>",
    ]
    for head, cells in rows:
        row = "".join(_cell(cell, column in text_columns) for column, cell in enumerate(cells))
        lines.append(f'<tr><th scope="row">{escape(head)}</th>{row}</tr>')
    return "\n".join([*lines, "</tbody></table></div>"])


def _cell(cell: Cell, text: bool) -> str:
    number = f' data-value="{cell.value:.10g}"' if cell.value is not None else ""
    kind = ' class="text"' if text else ""
    content = escape(cell.text)
    return f"<td{number}{kind}>{f'<strong>{content}</strong>' if cell.best else content}</td>"


def figure(plot: str, caption: str) -> str:
    """A plot with its caption."""
    return f"<figure>{plot}<figcaption>{escape(caption)}</figcaption></figure>"


def folded(summary: str, content: str) -> str:
    """Returns content in HTML that is hidden under a summary until the reader opens it."""
    return f"<details><summary>{escape(summary)}</summary>\n{content}\n</details>"


def linked(text: str) -> str:
    """The text, escaped, with its web addresses as links."""
    parts, end = [], 0
    for match in _ADDRESS.finditer(text):
        address = escape(match[0])
        parts += [escape(text[end : match.start()]), f'<a href="{address}">{address}</a>']
        end = match.end()
    return "".join([*parts, escape(text[end:])])
