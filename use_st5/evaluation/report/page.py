"""The report as one HTML page that needs nothing beside it, and its plots as files."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from use_st5._files import atomic_path
from use_st5._imports import require
from use_st5.evaluation.record import EvaluationRecord
from use_st5.evaluation.report import theme as themes
from use_st5.evaluation.report.charts import png
from use_st5.evaluation.report.evaluated import Evaluated, evaluated_models
from use_st5.evaluation.report.section import Section
from use_st5.evaluation.report.sections import every_score, report_sections
from use_st5.evaluation.report.theme import COLOURS, DARK, LIGHT, Theme

if TYPE_CHECKING:
    from markupsafe import Markup

_TEMPLATES = Path(__file__).parent
_ADDRESS = re.compile(r"https?://[^\s<>\"']*[^\s<>\"'.,;:)\]]")


def write_report(
    records: Sequence[EvaluationRecord],
    folder: str | os.PathLike[str],
    *,
    published: bool = True,
) -> list[Path]:
    """Compares models in one HTML page, with its plots as PNG files beside it.

    The page needs no other file and no network; the files of the plots are for other documents.
    Older files of the same names in the folder are replaced, others stay.

    Args:
        records: What `use-st5 evaluate` wrote, one per model, in the order to show them.
        folder: Where to write; it is created where it does not exist.
        published: Whether to show the papers' published rows beside the models.

    Returns:
        The paths of what was written: `report.html` in the folder, then the plots.

    Raises:
        ValueError: There are no records, or two of one name.
        ImportError: matplotlib or Jinja is missing.
    """
    models = evaluated_models(records)
    require("matplotlib", "evaluation")
    sections = report_sections(models, published=published)
    images = {
        plot.name: Image(png(plot.draw(LIGHT)), png(plot.draw(DARK)))
        for section in sections
        for plot in section.plots
    }
    text = html_page(models, sections, images, published=published)
    contents = {"report.html": text.encode()}
    contents |= {f"{name}.png": image.light for name, image in images.items()}
    paths = [Path(folder, name) for name in contents]
    for path, content in zip(paths, contents.values(), strict=True):
        with atomic_path(path) as temporary:
            temporary.write_bytes(content)
    return paths


@dataclass(frozen=True)
class Image:
    """A plot for light and for dark screens.

    Attributes:
        light: The PNG file's bytes.
        dark: The same in the colours of a dark page.
    """

    light: bytes
    dark: bytes

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels, which PNG's first chunk holds."""
        return (int.from_bytes(self.light[16:20]), int.from_bytes(self.light[20:24]))


def html_page(
    models: Sequence[Evaluated],
    sections: Sequence[Section],
    images: Mapping[str, Image],
    *,
    published: bool,
) -> str:
    """Renders the page.

    Args:
        models: What is compared.
        sections: Its parts.
        images: Name of a plot → its pictures.
        published: Whether it shows what papers published.

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
        published=published,
        light=LIGHT,
        dark=DARK,
        colours=COLOURS,
        glyph=themes.glyph,
    )


def _title(models: Sequence[Evaluated]) -> str:
    return models[0].name if len(models) == 1 else f"{len(models)} sentence encoders compared"


def _inline(image: Image) -> dict[str, Any]:
    """The pictures as addresses that hold them, and the size in the page's pixels."""
    width, height = (side // 2 for side in image.size)
    return {"light": _address(image.light), "dark": _address(image.dark)} | {
        "width": width,
        "height": height,
    }


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
