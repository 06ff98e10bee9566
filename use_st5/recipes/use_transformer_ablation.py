"""USE Transformer untrained, by three tasks, by the teacher and by all: what each contributes.

    use-st5 train use_transformer_ablation --data DATA --teacher TEACHER --out runs/ablation

Mixtures of the tasks of `use_transformer_en`, three seeds each, the same model, vocabulary, batch
sizes and number of steps. `table.md` gives mean and standard deviation over the seeds on the
development split of the STS Benchmark. Runs that are complete are not repeated.

Measured on two cores of a Xeon with AMX, 37 minutes with the arrays: Pearson 58.6 ± 1.7 untrained,
30.0 ± 22.0 by three tasks, 83.1 ± 0.1 by the teacher, 83.1 ± 0.2 with both, 82.2 ± 0.2 with related
sentences, which take half of the batches. The card of `use_transformer_en` has the table. That was
before the recipe had hints for all sentences and a sum of the second block.
"""

from __future__ import annotations

from pathlib import Path

from use_st5.recipes import use_transformer_en
from use_st5.recipes._run_folder import alone
from use_st5.recipes._task_ablation import THREE_TASKS, ablate_tasks
from use_st5.recipes._use_data import TASKS

ROWS = {
    "untrained": (),
    "three_tasks": THREE_TASKS,
    "teacher": ("teacher",),
    "with_teacher": TASKS,
    "with_related": use_transformer_en.TASKS,
}
STEPS = 120


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
        use_transformer_en.run,
        data,
        output,
        rows=ROWS,
        seed=seed,
        steps=steps or STEPS,
        teacher=teacher,
        resume=resume,
        prepared=prepared,
    )
