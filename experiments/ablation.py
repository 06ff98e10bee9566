"""Several experiments, each trained with several seeds: the rows of a table."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

from experiments.command import options_of
from experiments.run import Scores, SharedOptions, write_json
from experiments.seed_table import FURTHER, seed_means, seed_scores, seed_table
from use_st5.io import atomic_path, sole_writer


@dataclasses.dataclass(frozen=True)
class Ablation:
    """A table of experiments.

    Attributes:
        rows: The experiments by name.
        steps: Optimizer steps of each training; None: the experiments' own numbers.
        seeds: The number of trainings of each row.
        further: Data folder and exported encoder → scores on data that training does not use; the
            table shows them with the rows' own scores. None: no such scores.
    """

    rows: Mapping[str, Any]
    steps: int | None = None
    seeds: int = 3
    further: Callable[[Path, Path], Scores] | None = None

    def run(
        self,
        data: Path,
        output: Path,
        *,
        teacher: Path | None = None,
        pretrained: Path | None = None,
        prepared: Path | None = None,
        seeds: int | None = None,
        rows: Sequence[str] = (),
        **options: Unpack[SharedOptions],
    ) -> Scores:
        """Trains rows with each seed, all rows with the first before the second.

        Writes `table.md` after each training. Returns mean scores by "row/score".

        Args:
            data: Folder of the corpora.
            output: Folder of the runs and the table.
            teacher: Folder of a teacher's vectors; for all runs `teacher` in `output` by default.
            pretrained: Folder that the rows start from; `pretrain_t5` beside `output` by default.
            prepared: As in `Run`; for all runs `prepared` in `output` by default.
            seeds: The number of seeds; the table's own by default.
            rows: The names of the rows to train; none: all rows.
            **options: `seed` is the first of the seeds, `steps` are the table's own by default. The
                others are as in `Run`, on one machine.
        """
        steps, first = options.get("steps") or self.steps, options.get("seed", 0)
        stems = {name: f"{name}_{steps}" if steps else name for name in self.rows}
        folders = {
            "teacher": teacher or output / "teacher",
            "pretrained": pretrained or output.parent / "pretrain_t5",
            "prepared": prepared or output / "prepared",
        }
        complete: dict[str, list[Scores]] = {}
        with sole_writer(output, inside=True):
            for seed in range(first, first + (seeds or self.seeds)):
                for name in rows or self.rows:
                    run, folder = self.rows[name].run, output / f"{stems[name]}_{seed}"
                    if not (options.get("resume", True) and (folder / "scores.json").exists()):
                        (folder / FURTHER).unlink(missing_ok=True)
                        known = options_of(run)
                        given = {key: path for key, path in folders.items() if key in known}
                        run(data, folder, **{**options, **given, "seed": seed, "steps": steps})
                    if self.further and not (folder / FURTHER).exists():
                        write_json(folder / FURTHER, self.further(data, folder / "model"))
                    scores = {row: seed_scores(output, stem) for row, stem in stems.items()}
                    complete = {row: runs for row, runs in scores.items() if runs}
                    title = f"After {steps} steps" if steps else "As the experiments are"
                    with atomic_path(output / "table.md") as temporary:
                        temporary.write_text(seed_table(title, complete), encoding="utf-8")
        return seed_means(complete)
