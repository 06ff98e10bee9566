"""The page of a training: its scores, its curves and the statistics of its data."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from use_st5 import _page, _svg
from use_st5._files import atomic_path
from use_st5._page import Cell
from use_st5._remote_files import as_written, open_local
from use_st5._svg import Axis, Series
from use_st5.training.dataset_stats import DatasetStats
from use_st5.training.history import History
from use_st5.training.model_card import command_line
from use_st5.training.validation import Scores

if TYPE_CHECKING:
    from use_st5.training.plan import TrainingPlan

PAGE = "run.html"
# A curve of more points shows means of neighbours.
_POINTS = 200


def write_page(
    plan: TrainingPlan,
    history: History,
    work: Path,
    target: Path,
    scores: Mapping[str, Mapping[str, Scores]],
    results: Sequence[str],
    seconds: float,
) -> str:
    """Writes the page of a run into its folder.

    Args:
        plan: The plan of the run.
        history: The evaluations.
        work: The run's folder, whose TensorBoard files hold the losses of every process that was
            part of the run.
        target: The exported model.
        scores: "validation" and "test" → "before" and "after" → scores by name.
        results: The results of the run, one sentence each.
        seconds: The duration of the run.

    Returns:
        The line of the log that names the page.
    """
    logs = work / "checkpoints" / "logs"
    body = [
        f"<p>{escape(_done(plan, history, seconds))}</p>",
        *(f"<p>{escape(line[:1].upper() + line[1:])}.</p>" for line in results),
        "<h2>Scores</h2>",
        _scores_table(scores),
        '<p class="muted">Scores are multiplied by 100. The validation rows chose the exported '
        "weights, so that their scores are a little optimistic; the test rows chose nothing.</p>",
        '<h2>Curves</h2>\n<div class="plots">',
        *_curves(history, logged_losses(logs), plan.monitor, plan.unit),
        "</div>\n<h2>Data</h2>",
        _data_table(plan),
        _page.folded("What was said before the first step", _listed(plan.lines())),
        f"<h2>Command</h2>\n<p><code>{escape(command_line(plan, target))}</code></p>",
    ]
    path = work / PAGE
    with atomic_path(path) as temporary:
        text = _page.document(f"Training of {target.name}", "\n".join(body))
        temporary.write_text(text, encoding="utf-8")
    return f"page of the run: {as_written(path)}; TensorBoard: {as_written(logs)}"


def _done(plan: TrainingPlan, history: History, seconds: float) -> str:
    """A sentence that says which model was trained on how many rows and steps."""
    rows, files = sum(found.kept for found in plan.stats), len(plan.stats)
    return (
        f"{plan.start} was trained on {rows:,} rows of {files} file{'s' * (files > 1)} for "
        f"{history.step:,} {plan.unit}s, in {datetime.timedelta(seconds=round(seconds))}."
    )


def _scores_table(scores: Mapping[str, Mapping[str, Scores]]) -> str:
    rows = []
    for part, part_scores in scores.items():
        for name, after in part_scores["after"].items():
            before = part_scores["before"][name]
            values = (100 * before, 100 * after, 100 * (after - before))
            texts = (f"{values[0]:.2f}", f"{values[1]:.2f}", f"{values[2]:+.2f}")
            bolds = (before > after, after > before, False)
            cells = [
                Cell(text.replace("-", "−"), value, bold)
                for text, value, bold in zip(texts, values, bolds, strict=True)
            ]
            rows.append((f"{part}: {name}", cells))
    return _page.table("Rows: score", ("Before", "After", "Change"), rows, name="Scores")


def _curves(
    history: History, losses: Mapping[str, Mapping[int, float]], monitor: str, unit: str
) -> Iterator[str]:
    """The losses of the tasks, and the monitored score of the validation rows."""
    series = []
    for place, (name, values) in enumerate(losses.items()):
        steps = sorted(values)
        x, y = (_thinned(row) for row in (steps, [values[step] for step in steps]))
        series.append(Series(name, x, y, place=place))
    if series:
        caption = "Loss of each task, in training."
        yield _page.figure(_svg.lines(series, Axis("step", "loss"), alt=caption), caption)
    score_series = Series(
        monitor,
        tuple(each["step"] for each in history.evaluations),
        tuple(100 * each[monitor] for each in history.evaluations),
    )
    caption = f"{monitor} × 100 of the validation rows. The line is at the {unit} that is exported."
    axis, rule = Axis(unit, f"{monitor} × 100"), (history.best_step or 0, "exported")
    yield _page.figure(_svg.lines([score_series], axis, alt=caption, rule=rule), caption)


def _thinned(values: Sequence[float]) -> tuple[float, ...]:
    """The values; if there are more than `_POINTS`, means of neighbours instead."""
    parts = np.array_split(np.asarray(values, float), min(len(values), _POINTS))
    return tuple(float(part.mean()) for part in parts)


def _data_table(plan: TrainingPlan) -> str:
    """A row for each file."""
    limit = plan.arguments.text_length(plan.encoder.max_length)
    heads = ("Task", "Rows", "Held out", "Repeated", "Tokens, median", "Most tokens", "Texts cut")
    rows = [(Path(found.source.name).name, _data_cells(found, limit)) for found in plan.stats]
    return _page.table("File", heads, rows, name="Data")


def _data_cells(found: DatasetStats, limit: int) -> list[Cell]:
    numbers = (
        *(found.rows, found.left_out, found.repeated, round(float(np.median(found.lengths)))),
        *(int(found.lengths.max()), int((found.lengths > limit).sum())),
    )
    return [Cell(found.source.kind.name), *(Cell(f"{each:,}", each) for each in numbers)]


def _listed(lines: Iterator[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(line.strip())}</li>' for line in lines)}</ul>"


def logged_losses(folder: Path) -> dict[str, dict[int, float]]:
    """Task → step → loss, from TensorBoard's files; the later value if a step was made twice."""
    import tensorflow as tf

    losses: dict[str, dict[int, float]] = {}
    with open_local(folder) as local:
        files = [str(file) for file in sorted(local.glob("events.*"))]
        for record in tf.data.TFRecordDataset(files).as_numpy_iterator():
            event = tf.compat.v1.Event.FromString(record)
            for value in event.summary.value:
                task, _, name = value.tag.rpartition("/")
                if name == "loss":
                    number = float(np.squeeze(tf.make_ndarray(value.tensor)))
                    losses.setdefault(task, {})[int(event.step)] = number
    return losses
