"""Writing a report: the page, and its plots as files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from use_st5._files import atomic_path
from use_st5._imports import require
from use_st5.evaluation.record import EvaluationRecord
from use_st5.evaluation.report.charts import png
from use_st5.evaluation.report.evaluated import evaluated_models
from use_st5.evaluation.report.page import Image, html_page
from use_st5.evaluation.report.sections import report_sections
from use_st5.evaluation.report.theme import DARK, LIGHT


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
