"""The rows that show what each task contributes to a Universal Sentence Encoder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from use_st5.recipes._ablation import ablate
from use_st5.recipes._use_data import TASKS

Rows = Mapping[str, Sequence[str]]

THREE_TASKS = ("skip_thought", "input_response", "inference")
ALL_ROWS: Rows = {
    "untrained": (),
    **{task: (task,) for task in THREE_TASKS},
    "three_tasks": THREE_TASKS,
    "with_teacher": TASKS,
}


def ablate_tasks(
    train: Callable[..., object],
    data: Path,
    output: Path,
    *,
    rows: Rows,
    seed: int,
    steps: int,
    teacher: Path | None,
    resume: bool,
    prepared: Path | None,
) -> dict[str, float]:
    """Runs a recipe with the tasks of every row and with every seed, and writes the table.

    Args:
        train: The recipe's `run`.
        data: Folder of the corpora.
        output: Folder of the runs and the table.
        rows: Name → tasks.
        seed: The first of the three seeds.
        steps: Optimizer steps of each run.
        teacher: Folder of the teacher's vectors.
        resume: Whether runs that are complete or interrupted are kept.
        prepared: Folder of vocabulary and id arrays; in `output` by default.

    Returns:
        Mean score by "row/score".
    """

    def run_row(row: str, folder: Path, each: int) -> None:
        train(
            data,
            folder,
            seed=each,
            steps=steps,
            teacher=teacher,
            resume=resume,
            tasks=rows[row],
            prepared=prepared or output / "prepared",
        )

    return ablate(rows, run_row, output, seed=seed, steps=steps, resume=resume)
