"""The report as one HTML page that needs no other file, its plots as files, and as Markdown."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from use_st5._files import atomic_path
from use_st5._imports import require
from use_st5.evaluation.record import EvaluationRecord
from use_st5.evaluation.report.charts import COLOURS, DARK, LIGHT, Theme, glyph, png
from use_st5.evaluation.report.sections import Section, every_score, report_sections
from use_st5.evaluation.report.tables import (
    Cell,
    Evaluated,
    Row,
    Table,
    evaluated_models,
    one_line,
)

if TYPE_CHECKING:
    from markupsafe import Markup

_TEMPLATES = Path(__file__).parent
# What Markdown, or HTML in it, would take for more than text; an underscore within a word is none.
_SPECIAL = re.compile(r"([\\`*{}\[\]<>|~#&$]|(?<![^\W_])_|_(?![^\W_]))")
_ADDRESS = re.compile(r"https?://[^\s<>\"']*[^\s<>\"'.,;:)\]]")


def write_report(
    records: Sequence[EvaluationRecord],
    folder: str | os.PathLike[str],
) -> list[Path]:
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
        ImportError: matplotlib or Jinja is missing.
    """
    models = evaluated_models(records)
    require("matplotlib", "evaluation")
    sections = report_sections(models)
    images = {
        plot.name: (png(plot.draw(LIGHT)), png(plot.draw(DARK)))
        for section in sections
        for plot in section.plots
    }
    text = html_page(models, sections, images)
    contents = {"report.html": text.encode()}
    contents |= {f"{name}.png": light for name, (light, _) in images.items()}
    paths = [Path(folder, name) for name in contents]
    for path, content in zip(paths, contents.values(), strict=True):
        with atomic_path(path) as temporary:
            temporary.write_bytes(content)
    return paths


def html_page(
    models: Sequence[Evaluated],
    sections: Sequence[Section],
    images: Mapping[str, tuple[bytes, bytes]],
) -> str:
    """Renders the page.

    Args:
        models: What is compared.
        sections: Its parts.
        images: Name of a plot → its PNG for light and for dark screens.

    Raises:
        ImportError: Jinja is missing.
    """
    jinja2 = require("jinja2", "evaluation")
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
    )
    environment.filters |= {"linked": _linked, "variables": _variables}
    return environment.get_template("report.html.jinja").render(
        title=_title(models),
        models=models,
        sections=sections,
        images={name: _inline(image) for name, image in images.items()},
        every=every_score(models),
        skipped=_skipped(models),
        files=_files(models),
        light=LIGHT,
        dark=DARK,
        colours=COLOURS,
        glyph=glyph,
    )


def _title(models: Sequence[Evaluated]) -> str:
    return models[0].name if len(models) == 1 else f"{len(models)} sentence encoders compared"


def _inline(image: tuple[bytes, bytes]) -> dict[str, Any]:
    """The pictures as addresses that hold them, and the size in the page's pixels."""
    light, dark = image
    # PNG's first chunk holds the size.
    width, height = (int.from_bytes(light[place : place + 4]) // 2 for place in (16, 20))
    return {"light": _address(light), "dark": _address(dark), "width": width, "height": height}


def _address(png: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(png).decode('ascii')}"


def _variables(theme: Theme) -> Markup:
    """The theme as CSS custom properties."""
    from markupsafe import Markup

    named = {name: getattr(theme, name) for name in ("ink", "muted", "line", "page")}
    named |= {f"m{place}": colour for place, colour in enumerate(theme.models)}
    # Constants of this package, no text of a user.
    return Markup(" ".join(f"--{name}: {value};" for name, value in named.items()))


def _linked(text: str) -> Markup:
    """The text, escaped, with its web addresses as links."""
    from markupsafe import Markup

    link = Markup('<a href="{0}">{0}</a>')
    parts, end = [], 0
    for found in _ADDRESS.finditer(text):
        parts += [text[end : found.start()], link.format(found[0])]
        end = found.end()
    # Joining escapes what is not markup already.
    return Markup("").join([*parts, text[end:]])


def _skipped(models: Sequence[Evaluated]) -> list[tuple[str, list[str], list[str]]]:
    """(why, tasks, names of models), each reason once for the same models."""
    reasons: dict[str, dict[str, list[str]]] = {}
    for model in models:
        for task, why in {**model.record.skipped, **model.record.failed}.items():
            reasons.setdefault(why, {}).setdefault(task, []).append(model.name)
    grouped: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for why, tasks in reasons.items():
        for task, names in tasks.items():
            grouped.setdefault((why, tuple(names)), []).append(task)
    return [(why, tasks, [*names]) for (why, names), tasks in grouped.items()]


def _files(models: Sequence[Evaluated]) -> list[tuple[str, str, list[str]]]:
    """(path, SHA-256, names of the models measured on it), by path."""
    files: dict[tuple[str, str], dict[str, None]] = {}
    for model in models:
        for task in model.record.tasks.values():
            for file in task["data"].items():
                files.setdefault(file, {})[model.name] = None
    return [(path, digest, [*names]) for (path, digest), names in sorted(files.items())]


def markdown_tables(records: Sequence[EvaluationRecord]) -> str:
    """Writes the main tables of a report as GitHub Markdown.

    Args:
        records: As for `write_report`.

    Raises:
        ValueError: There are no records, or two of one name.
    """
    models = evaluated_models(records)
    lines: list[str] = []
    for section in report_sections(models):
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
    return _escape(f"{row.label} ({row.detail})" if row.detail else row.label)


def _cell(cell: Cell) -> str:
    text = f"**{_escape(cell.text)}**" if cell.best else _escape(cell.text)
    return f"{text} ({_escape(cell.small)})" if cell.small else text


def _escape(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", one_line(text))
