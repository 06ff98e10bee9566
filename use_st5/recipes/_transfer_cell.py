"""One cell of the transfer tables: a row tuned, trained and tested on a task."""

from __future__ import annotations

import statistics
import time
from typing import Any

import rich.console
import rich.progress

from use_st5.evaluation.data_folder import DataFolder
from use_st5.recipes._transfer_data import TASKS, split
from use_st5.recipes._transfer_row import Ingredients, PreparedSplit, TransferRow
from use_st5.recipes._transfer_training import accuracy, train, tune


class TransferCell:
    """Tunes on development texts, then trains and tests the repeats.

    Args:
        row: What is trained.
        task: A key of `TASKS`.
        folder: Of the evaluation sets.
        ingredients: Encoders and word vectors.
        settings: "seed", "repeats", "trials" and "epochs".
    """

    def __init__(
        self,
        row: TransferRow,
        task: str,
        folder: DataFolder,
        ingredients: Ingredients,
        settings: dict[str, Any],
    ) -> None:
        self.row = row
        self.task = task
        self.settings = settings
        self._ingredients = ingredients
        dataset, self._examples = TASKS[task]
        self._samples = dataset.read(folder)
        self._prepared: PreparedSplit | None = None

    def run(self, console: rich.console.Console) -> dict[str, Any]:
        """The cell's hyper-parameters, accuracies and cost."""
        started = time.monotonic()
        trials, repeats, seed = (self.settings[name] for name in ("trials", "repeats", "seed"))
        with _progress(console) as bar:
            shown = bar.add_task(
                f"{self.task} {self.row.name}: trainings",
                total=repeats + (trials + 1 if trials else 0),
            )

            def tried(chosen: dict[str, Any]) -> float:
                _, dev_accuracy = self._train(0, chosen)
                bar.advance(shown)
                return dev_accuracy

            chosen = tune(self.row, tried, trials=trials, seed=seed)
            dev, test = [], []
            for repeat in range(repeats):
                head, dev_accuracy = self._train(repeat, chosen)
                bar.advance(shown)
                dev.append(dev_accuracy)
                test.append(accuracy(head, self._prepare(repeat).test))
        seconds = time.monotonic() - started
        mean = statistics.fmean(test)
        said = f"{self.task} {self.row.name}: {100 * mean:.2f} ({seconds:.0f} s)"
        console.print(said, highlight=False)
        return {
            "hyper_parameters": chosen,
            "mean": mean,
            "std": statistics.stdev(test) if len(test) > 1 else None,
            "accuracies": test,
            "dev_accuracies": dev,
            "texts": {
                part: len(getattr(self._prepared, part).labels) for part in ("train", "dev", "test")
            },
            "seconds": round(seconds, 1),
        }

    def _train(self, repeat: int, chosen: dict[str, Any]) -> tuple[Any, float]:
        """The trained head and its accuracy on the development texts."""
        return train(
            self.row,
            self._prepare(repeat),
            chosen,
            self._ingredients,
            epochs=self.settings["epochs"],
            seed=self.settings["seed"] + repeat,
        )

    def _prepare(self, repeat: int) -> PreparedSplit:
        """The split of a repeat as features; the last one is kept."""
        this = split(self._samples, repeat, seed=self.settings["seed"], examples=self._examples)
        if self._prepared is None or self._prepared.number != this.number:
            self._prepared = self._ingredients.prepare(self.row, this)
        return self._prepared


def _progress(console: rich.console.Console) -> rich.progress.Progress:
    columns = ("{task.description}", rich.progress.BarColumn(), rich.progress.MofNCompleteColumn())
    return rich.progress.Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    )
