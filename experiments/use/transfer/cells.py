"""One cell of the transfer tables: a row tuned, trained and tested on a task."""

from __future__ import annotations

import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import keras
import numpy as np
import rich.console
import rich.progress
import tensorflow as tf

from experiments.use.transfer.rows import Features, Ingredients, PreparedSplit, TransferRow
from experiments.use.transfer.splits import TASKS, split
from use_st5.data import DataFolder

_BATCH = 64
_PATIENCE = 2
_WINDOW = 50  # batches whose texts are sorted by length


class TransferCell:
    """Tunes on development texts, then trains and tests the repeats.

    Args:
        row: The row to train.
        task: A key of `TASKS`.
        folder: The folder of the evaluation sets.
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
        start = time.monotonic()
        trials, repeats, seed = (self.settings[name] for name in ("trials", "repeats", "seed"))
        with _progress(console) as bar:
            progress_task = bar.add_task(
                f"{self.task} {self.row.name}: trainings",
                total=repeats + (trials + 1 if trials else 0),
            )

            def tried(chosen: dict[str, Any]) -> float:
                _, dev_accuracy = self._train(0, chosen)
                bar.advance(progress_task)
                return dev_accuracy

            chosen = tune(self.row, tried, trials=trials, seed=seed)
            dev, test = [], []
            for repeat in range(repeats):
                head, dev_accuracy = self._train(repeat, chosen)
                bar.advance(progress_task)
                dev.append(dev_accuracy)
                test.append(accuracy(head, self._prepare(repeat).test))
        seconds = time.monotonic() - start
        mean = statistics.fmean(test)
        message = f"{self.task} {self.row.name}: {100 * mean:.2f} ({seconds:.0f} s)"
        console.print(message, highlight=False)
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
        """The split of a repeat as features; keeps the last one for the next call."""
        new_split = split(
            self._samples, repeat, seed=self.settings["seed"], examples=self._examples
        )
        if self._prepared is None or self._prepared.number != new_split.number:
            self._prepared = self._ingredients.prepare(self.row, new_split)
        return self._prepared


def _progress(console: rich.console.Console) -> rich.progress.Progress:
    columns = ("{task.description}", rich.progress.BarColumn(), rich.progress.MofNCompleteColumn())
    return rich.progress.Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    )


def train(
    row: TransferRow,
    prepared: PreparedSplit,
    chosen: dict[str, Any],
    ingredients: Ingredients,
    *,
    epochs: int,
    seed: int,
) -> tuple[keras.Model, float]:
    """Trains one model's head until the dev accuracy has not risen for two epochs.

    Returns:
        The head with the weights of the best epoch, and its accuracy on dev.
    """
    keras.backend.clear_session()  # otherwise each training leaves 13 MB of graphs behind
    keras.utils.set_random_seed(seed)
    head = ingredients.model(row, prepared, chosen).head
    head.compile(
        keras.optimizers.Adam(chosen["learning_rate"]),
        "sparse_categorical_crossentropy",
        metrics=["accuracy"],
        jit_compile=False,
    )
    stop = keras.callbacks.EarlyStopping(
        "val_accuracy", mode="max", patience=_PATIENCE, restore_best_weights=True
    )
    history = head.fit(
        batches(prepared.train, seed=seed),
        validation_data=batches(prepared.dev),
        epochs=epochs,
        callbacks=[stop],
        shuffle=False,  # the batches are already shuffled
        verbose=0,
    )
    return head, max(history.history["val_accuracy"])


def accuracy(head: keras.Model, features: Features) -> float:
    """The accuracy of a trained head, in 0 … 1."""
    return head.evaluate(batches(features), verbose=0, return_dict=True)["accuracy"]


def tune(
    row: TransferRow, score: Callable[[dict[str, Any]], float], *, trials: int, seed: int
) -> dict[str, Any]:
    """The default hyper-parameters, or better ones if KerasTuner's Bayesian search finds some.

    Args:
        row: The row, on which the set of hyper-parameters depends.
        score: Hyper-parameters by name → accuracy on dev.
        trials: The number of other settings to try; 0: the defaults are returned.
        seed: Seed of the search.
    """
    import keras_tuner as tuner  # the extra `transfer`

    space = _space(tuner.HyperParameters(), row)
    first = dict(space.values)
    if not trials:
        return first
    to_beat = score(first)

    optimization: Any = tuner.BayesianOptimization

    class Search(optimization):
        def run_trial(self, trial: Any, **_: Any) -> dict[str, float]:
            return {"accuracy": score(dict(trial.hyperparameters.values))}

    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        # A warning of the model that predicts scores: few trials leave its scales at their bounds.
        warnings.filterwarnings("ignore", "The optimal value found for dimension")
        search = Search(
            objective=tuner.Objective("accuracy", "max"),
            max_trials=trials,
            num_initial_points=min(trials, 4),
            hyperparameters=space,
            tune_new_entries=False,
            max_consecutive_failed_trials=1,  # an error is an error, not a poor trial
            seed=seed,
            directory=folder,
            overwrite=True,
        )
        search.search(verbose=0)
        (best,) = search.oracle.get_best_trials()
    return dict(best.hyperparameters.values) if best.score > to_beat else first


def batches(features: Features, *, seed: int | None = None) -> tf.data.Dataset:
    """Batches of texts of similar length, cut to the longest; shuffled if there is a seed."""
    signature = {
        name: tf.TensorSpec([None, None if name == "words" else values.shape[1]], values.dtype)
        for name, values in features.inputs.items()
    }
    rng = None if seed is None else np.random.default_rng(seed)
    dataset = tf.data.Dataset.from_generator(
        lambda: _batches(features, rng),
        output_signature=(signature, tf.TensorSpec([None], tf.int64)),
    )
    count = -(-len(features.labels) // _BATCH)
    return dataset.apply(tf.data.experimental.assert_cardinality(count)).prefetch(2)


def _batches(
    features: Features, rng: np.random.Generator | None
) -> Iterator[tuple[dict[str, np.ndarray], np.ndarray]]:
    count = len(features.labels)
    order = np.arange(count) if rng is None else rng.permutation(count)
    ids = features.inputs.get("words")
    lengths = np.zeros(count, np.int64) if ids is None else (ids > 0).sum(axis=1)
    windows = (
        order[start : start + _WINDOW * _BATCH] for start in range(0, count, _WINDOW * _BATCH)
    )
    for window in windows:
        window = window[np.argsort(lengths[window], kind="stable")]
        starts = np.arange(0, len(window), _BATCH)
        for start in starts if rng is None else rng.permutation(starts):
            rows = window[start : start + _BATCH]
            inputs = {name: values[rows] for name, values in features.inputs.items()}
            if ids is not None:
                inputs["words"] = inputs["words"][:, : max(1, lengths[rows].max())]
            yield inputs, features.labels[rows]


def _space(space: Any, row: TransferRow) -> Any:
    """The hyper-parameters of a row, with their defaults."""
    space.Choice("learning_rate", [3e-4, 1e-3, 3e-3], default=1e-3)
    space.Choice("dropout", [0.0, 0.25, 0.5], default=0.25)
    space.Choice("hidden_units", [0, 128, 512], default=128)
    if row.words and row.words.startswith("cnn"):
        space.Choice("filters", [50, 100], default=100)
    elif row.words:
        space.Choice("word_units", [100, 300], default=100)
        space.Choice("word_dropout", [0.0, 0.3], default=0.3)
    if row.pretrained:
        space.Boolean("train_words", default=True)
    return space
