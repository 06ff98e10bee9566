"""USE-DAN untrained, by each task alone, by all three, and with the teacher: what each contributes.

    use-st5 train use_dan_ablation --data DATA --teacher TEACHER --out runs/use_dan_ablation

Mixtures of the tasks of `use_dan_en`, three seeds each, the same model, vocabulary, batch
sizes and number of steps, without calibration. `table.md` gives mean and standard deviation over
the seeds on the development split of the STS Benchmark. Runs that are complete are not repeated.

Measured on two cores in 29 minutes (Pearson x 100): untrained 56.08 ± 0.60, skip_thought 11.90 ±
2.56, input_response 26.74 ± 0.56, inference 28.49 ± 0.67, three_tasks 20.11 ± 2.76, with_teacher
74.76 ± 1.27. The rate suits the teacher; the tasks alone want a lower one and more steps.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from use_st5.recipes import use_dan_en
from use_st5.recipes._calibration import Calibration
from use_st5.recipes._run_folder import alone
from use_st5.recipes._task_ablation import ALL_ROWS, ablate_tasks

STEPS = 300


@alone
def run(
    data: Path,
    output: Path,
    *,
    seed: int = 0,
    steps: int | None = None,
    teacher: Path | None = None,
    resume: bool = True,
    prepared: Path | None = None,
) -> dict[str, float]:
    """Runs every row with every seed and writes the table.

    Args:
        data: Folder of the corpora.
        output: Folder of the runs and the table.
        seed: The first of the three seeds.
        steps: Optimizer steps of each run.
        teacher: Folder of the teacher's vectors.
        resume: Whether runs that are complete or interrupted are kept.
        prepared: Folder of vocabulary and id arrays; in `output` by default.

    Returns:
        Mean score by "row/score".
    """
    return ablate_tasks(
        partial(use_dan_en.run, calibration=Calibration()),
        data,
        output,
        rows=ALL_ROWS,
        seed=seed,
        steps=steps or STEPS,
        teacher=teacher,
        resume=resume,
        prepared=prepared,
    )
