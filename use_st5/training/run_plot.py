"""The curves of a training: the losses of its tasks and the score of its validation rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from use_st5 import plots
from use_st5.io.remote_files import as_written, open_local
from use_st5.training.history import History

PLOT = "run.png"


def write_plot(history: History, work: Path, monitor: str, unit: str) -> str:
    """Draws the curves of a run into its folder, if matplotlib is installed.

    Args:
        history: The evaluations.
        work: The run's folder, whose TensorBoard files hold the losses of every process that was
            part of the run.
        monitor: The score that chose the exported step.
        unit: What the history counts, such as "step".

    Returns:
        The line of the log that names the picture, or says why it is missing.
    """
    logs = work / "checkpoints" / "logs"
    scores = {int(each["step"]): 100 * each[monitor] for each in history.evaluations}
    try:
        figure = plots.training_curves(
            logged_losses(logs),
            scores,
            score=f"{monitor} × 100",
            unit=unit,
            best=history.best_step or 0,
        )
        plots.save(figure, work / PLOT)
        curves = f"curves: {as_written(work / PLOT)}"
    except ImportError as error:
        curves = f"{PLOT} was not drawn: {error}"
    return f"{curves}; TensorBoard: {as_written(logs)}"


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
