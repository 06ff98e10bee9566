"""USE-DAN untrained, by each task alone, by all three, and with the teacher: what each contributes.

    use-st5 reproduce use_dan_ablation --data DATA --teacher TEACHER --out runs/use_dan_ablation

Mixtures of the tasks of `use_dan_en`, three seeds each, the same model, vocabulary, batch
sizes and number of steps, without calibration. `table.md` gives mean and standard deviation over
the seeds on the development split of the STS Benchmark. Runs that are complete are not repeated.

Measured on two cores in 29 minutes (Pearson x 100): untrained 56.08 ± 0.60, skip_thought 11.90 ±
2.56, input_response 26.74 ± 0.56, inference 28.49 ± 0.67, three_tasks 20.11 ± 2.76, with_teacher
74.76 ± 1.27. The rate suits the teacher; the tasks alone want a lower one and more steps.
"""

from __future__ import annotations

from use_st5.recipes.use_dan_en import VARIANTS
from use_st5.training.ablation import Ablation

UNCALIBRATED = VARIANTS["uncalibrated"]
THREE_TASKS = ("skip_thought", "input_response", "inference")
RECIPE = Ablation(
    rows={
        "untrained": UNCALIBRATED.only(()),
        **{task: UNCALIBRATED.only([task]) for task in THREE_TASKS},
        "three_tasks": UNCALIBRATED.only(THREE_TASKS),
        "with_teacher": UNCALIBRATED,
    },
    steps=300,
)
