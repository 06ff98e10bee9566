"""Several experiments, each trained with several seeds: the rows of a table."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

from experiments.command import options_of
from experiments.run import Scores, SharedOptions
from experiments.seed_table import FURTHER, seed_means, seed_scores, seed_table
from use_st5.io.files import atomic_path, sole_writer, write_json


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

        Raises:
            ValueError: There is no such row.
        """
        names, steps = self._names(rows), options.get("steps") or self.steps
        seed, resume = options.get("seed", 0), options.get("resume", True)
        run_options = {**options, "steps": steps, "prepared": prepared or output / "prepared"}
        folders = {
            "teacher": teacher or output / "teacher",
            "pretrained": pretrained or output.parent / "pretrain_t5",
        }
        with sole_writer(output, inside=True):
            for run_seed in range(seed, seed + (seeds or self.seeds)):
                for name in names:
                    row, folder = self.rows[name], output / f"{_stem(name, steps)}_{run_seed}"
                    if not (resume and (folder / "scores.json").exists()):
                        row_folders = {key: folders[key] for key in _folders_of(row)}
                        (folder / FURTHER).unlink(missing_ok=True)
                        row.run(data, folder, **run_options | row_folders | {"seed": run_seed})
                    if self.further and not (folder / FURTHER).exists():
                        write_json(folder / FURTHER, self.further(data, folder / "model"))
                    self._write_table(output, steps)
        return seed_means(self._complete(output, steps))

    def _names(self, rows: Sequence[str]) -> list[str]:
        if unknown := [name for name in rows if name not in self.rows]:
            known = ", ".join(self.rows)
            raise ValueError(f"rows: expected some of {known}, received {', '.join(unknown)}.")
        return [*(rows or self.rows)]

    def _complete(self, output: Path, steps: int | None) -> dict[str, list[Scores]]:
        """The scores of all complete runs: row → for each seed its scores."""
        scores = {name: seed_scores(output, _stem(name, steps)) for name in self.rows}
        return {name: runs for name, runs in scores.items() if runs}

    def _write_table(self, output: Path, steps: int | None) -> None:
        title = f"After {steps} steps" if steps else "As the experiments are"
        with atomic_path(output / "table.md") as temporary:
            temporary.write_text(seed_table(title, self._complete(output, steps)), encoding="utf-8")


def _folders_of(row: Any) -> set[str]:
    """The names of the shared folders that a row has options for."""
    return {"teacher", "pretrained"} & options_of(row.run).keys()


def _stem(name: str, steps: int | None) -> str:
    """The name of the folders of a row's runs, without the seed at its end."""
    return f"{name}_{steps}" if steps else name
