"""Several experiments, each trained with several seeds: the rows of a table."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

from experiments.command import options_of
from experiments.run import Scores, SharedOptions, check_names, write_json
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

        After each training `table.md` is written, from all complete runs with these steps.

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

        Returns:
            Mean score by "row/score", of all complete runs.
        """
        check_names("rows", rows, self.rows)
        steps, resume = options.get("steps") or self.steps, options.get("resume", True)
        stems = {name: f"{name}_{steps}" if steps else name for name in self.rows}
        run_options = {**options, "steps": steps, "prepared": prepared or output / "prepared"}
        folders = {
            "teacher": teacher or output / "teacher",
            "pretrained": pretrained or output.parent / "pretrain_t5",
        }
        first = options.get("seed", 0)
        with sole_writer(output, inside=True):
            for seed in range(first, first + (seeds or self.seeds)):
                for name in rows or self.rows:
                    row, folder = self.rows[name], output / f"{stems[name]}_{seed}"
                    if not (resume and (folder / "scores.json").exists()):
                        needed = folders.keys() & options_of(row.run).keys()
                        row_options = run_options | {key: folders[key] for key in needed}
                        (folder / FURTHER).unlink(missing_ok=True)
                        row.run(data, folder, **row_options | {"seed": seed})
                    if self.further and not (folder / FURTHER).exists():
                        write_json(folder / FURTHER, self.further(data, folder / "model"))
                    title = f"After {steps} steps" if steps else "As the experiments are"
                    with atomic_path(output / "table.md") as temporary:
                        table = seed_table(title, _complete(output, stems))
                        temporary.write_text(table, encoding="utf-8")
        return seed_means(_complete(output, stems))


def _complete(output: Path, stems: Mapping[str, str]) -> dict[str, list[Scores]]:
    """The scores of all complete runs: row → for each seed its scores."""
    scores = {name: seed_scores(output, stem) for name, stem in stems.items()}
    return {name: runs for name, runs in scores.items() if runs}
