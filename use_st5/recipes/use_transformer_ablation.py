"""USE Transformer untrained, by three tasks, by the teacher and by all: what each contributes.

    use-st5 reproduce use_transformer_ablation --data DATA --teacher TEACHER --out runs/ablation

Mixtures of the tasks of `use_transformer_en`, three seeds each, the same model, vocabulary, batch
sizes and number of steps. `table.md` gives mean and standard deviation over the seeds on the
development split of the STS Benchmark. Runs that are complete are not repeated.

Measured on two cores of a Xeon with AMX, 37 minutes with the arrays: Pearson 58.6 ± 1.7 untrained,
30.0 ± 22.0 by three tasks, 83.1 ± 0.1 by the teacher, 83.1 ± 0.2 with both, 82.2 ± 0.2 with related
sentences, which take half of the batches. The card of `use_transformer_en` has the table. That was
before the recipe had hints for all sentences and a sum of the second block.
"""

from __future__ import annotations

from use_st5.recipes import use_transformer_en
from use_st5.training.ablation import Ablation

WHOLE = use_transformer_en.RECIPE
THREE_TASKS = ("skip_thought", "input_response", "inference")
RECIPE = Ablation(
    rows={
        "untrained": WHOLE.only(()),
        "three_tasks": WHOLE.only(THREE_TASKS),
        "teacher": WHOLE.only(["teacher"]),
        "with_teacher": WHOLE.only([*THREE_TASKS, "teacher"]),
        "with_related": WHOLE,
    },
    steps=120,
)
