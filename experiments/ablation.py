"""Several experiments, each trained with several seeds: the rows of a table."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.command import options_of
from experiments.run import Scores, write_json
from experiments.seed_table import FURTHER, seed_means, seed_scores, seed_table


@dataclasses.dataclass(frozen=True)
class Ablation:
    """A table of experiments.

    Attributes:
        rows: The experiments by name.
        steps: Optimizer steps of each training; None: the experiments' own numbers.
        further: Data folder and exported encoder → scores on data that training does not use.
    """

    rows: Mapping[str, Any]
    steps: int | None = None
    further: Callable[[Path, Path], Scores] | None = None

    def run(
        self,
        data: Path,
        output: Path,
        *,
        teacher: Path | None = None,
        pretrained: Path | None = None,
        prepared: Path | None = None,
        seed: int = 0,
        seeds: int = 3,
        steps: int | None = None,
        rows: Sequence[str] = (),
        **options: Any,
    ) -> Scores:
        """Trains rows with each seed, all rows with the first before the second.

        Writes `table.md` after each training. Returns mean scores by "row/score".

        Args:
            data: As in `Run`.
            output: Folder of the runs and the table.
            teacher: Folder of a teacher's vectors; for all runs `teacher` in `output` by default.
            pretrained: Folder that the rows start from; `pretrain_t5` beside `output` by default.
            prepared: As in `Run`; for all runs `prepared` in `output` by default.
            seed: The first of the seeds.
            seeds: The number of seeds.
            steps: As in `Run`; the table's own by default.
            rows: The names of the rows to train; none: all rows.
            **options: The others are as in `Run`, on one machine.
        """
        steps = steps or self.steps
        stems = {name: f"{name}_{steps}" if steps else name for name in self.rows}
        folders = {
            "teacher": teacher or output / "teacher",
            "pretrained": pretrained or output.parent / "pretrain_t5",
            "prepared": prepared or output / "prepared",
        }
        for run_seed, name in itertools.product(range(seed, seed + seeds), rows or self.rows):
            run, folder = self.rows[name].run, output / f"{stems[name]}_{run_seed}"
            if not (folder / "scores.json").exists():
                given = {key: folders[key] for key in folders.keys() & options_of(run)}
                run(data, folder, **options, **given, seed=run_seed, steps=steps)
            if self.further and not (folder / FURTHER).exists():
                write_json(folder / FURTHER, self.further(data, folder / "model"))
            runs = {row: done for row, stem in stems.items() if (done := seed_scores(output, stem))}
            title = f"After {steps} steps" if steps else "As the experiments are"
            (output / "table.md").write_text(seed_table(title, runs), encoding="utf-8")
        return seed_means(runs)
