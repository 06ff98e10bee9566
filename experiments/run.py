"""One run of an experiment: its folders, its parts and its files.

An experiment's `run` has three parts: texts become arrays, arrays train a model, the model is
exported and scored. One machine does the parts one after the other, or several machines do one part
each.
"""

from __future__ import annotations

import contextlib
import json
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict

import keras

from use_st5.io import atomic_path, sole_writer

Part = Literal["prepare", "train", "export"]
Scores = dict[str, float]
# A run of fewer steps is a trial: it needs only the rows of its batches; its scores say nothing.
TRIAL_STEPS = 100


class SharedOptions(TypedDict, total=False):
    """The options of every experiment on the command line, which `Run` describes."""

    seed: int
    steps: int | None
    resume: bool
    strategy: str | None


class Options(SharedOptions, total=False):
    """The options of an experiment that is one run, which `Run` describes."""

    part: Part | None
    prepared: Path | None
    batch_files: str | None


class Run:
    """One run of an experiment.

    Args:
        data: Folder of the corpora and evaluation sets.
        output: Folder for arrays, checkpoints, the exported encoder and the scores.
        seed: Seed of the initial weights, the draw of tasks and the shuffling.
        steps: Optimizer steps of each training; the experiment's own by default. A run of fewer
            than 100 is a trial: it prepares only the rows of the first `steps` batches.
        resume: Whether an interrupted run in `output` continues.
        part: "prepare" writes arrays, "train" trains a model on them, "export" exports and scores
            it; None: all parts.
        strategy: The devices to train on, as in `shared_strategy`; None: the backend's own device.
        prepared: Folder of vocabulary and arrays, shared by runs; in `output` by default.
        batch_files: Folder in which workers in other processes find the batches, as in `Trainer`.

    Attributes:
        writes: Whether this process writes the files: with several workers, only one does.
    """

    def __init__(
        self,
        data: Path,
        output: Path,
        *,
        seed: int = 0,
        steps: int | None = None,
        resume: bool = True,
        part: Part | None = None,
        strategy: str | None = None,
        prepared: Path | None = None,
        batch_files: str | os.PathLike[str] | None = None,
    ) -> None:
        if part != "train" and keras.config.backend() != "tensorflow":
            raise ValueError(
                "An experiment, but for its part 'train', needs Keras on TensorFlow: unset "
                f"KERAS_BACKEND before Python starts. Received: {keras.config.backend()}"
            )
        if part != "train" and strategy == "multi_worker":
            raise ValueError(
                "multi_worker: expected --part train. First run --part prepare on one machine, "
                "with an output folder that all machines see."
            )
        self.data, self.output, self.seed, self.steps = data, output, seed, steps
        self.prepared = prepared or output / "prepared"
        self.checkpoints = output / "checkpoints"
        self.batch_files = batch_files
        self.strategy: Any = None
        self.writes = True
        self._part, self._resume = part, resume
        if strategy is not None:
            from use_st5.training import is_chief, shared_strategy

            self.strategy = shared_strategy(strategy)
            self.writes = is_chief(self.strategy)

    def does(self, part: Part) -> bool:
        """Whether the run does the part."""
        return self._part in (None, part)

    @contextlib.contextmanager
    def begun(self, *exported: str) -> Iterator[None]:
        """Makes this process the only one that writes the output folder, for a block.

        `exported` are the folders in it that the run replaces, "model" by default. What is in them
        must be a model.
        """
        with sole_writer(self.output, inside=True) if self.writes else contextlib.nullcontext():
            for folder in (self.output / name for name in exported or ("model",)):
                if (
                    folder.is_dir()
                    and any(folder.iterdir())
                    and not (folder / "use_st5.json").exists()
                ):
                    raise FileExistsError(f"{folder} is no exported model. Choose another --out.")
            if not self._resume and self.checkpoints.exists():
                raise FileExistsError(
                    f"{self.checkpoints} exists. Remove it, or let the run resume."
                )
            yield

    def scope(self) -> contextlib.AbstractContextManager:
        """The context in which models and losses are made."""
        return contextlib.nullcontext() if self.strategy is None else self.strategy.scope()

    def keep(self, model: keras.Model) -> None:
        """Writes the trained model as `encoder.keras`."""
        if self.writes:
            with atomic_path(self.output / "encoder.keras") as temporary:
                save_model(model, temporary)

    def kept(self) -> keras.Model:
        """The model that `keep` wrote, with float32 computations."""
        model = keras.saving.load_model(self.output / "encoder.keras", compile=False)
        copy = type(model).from_config({**model.get_config(), "dtype": "float32"})
        copy.build()
        copy.set_weights(model.get_weights())
        return copy

    def write(self, name: str, values: Mapping[str, Any]) -> None:
        """Writes values as a JSON file of the output folder."""
        if self.writes:
            write_json(self.output / name, values)

    def write_facts(self, **facts: Any) -> None:
        """Writes facts about the training; it is the last action of a training."""
        self.write("training.json", {**facts, "seed": self.seed})

    def facts(self) -> dict[str, Any]:
        """The facts that `write_facts` wrote; the seed is that of the training, not of this run."""
        path = self.output / "training.json"
        if not path.exists():
            raise FileNotFoundError(
                f"Expected {path}, which the training writes when it is done. Run the same "
                f"command with --part train --out {self.output}"
            )
        return read_json(path)

    def write_scores(self, scores: Scores) -> Scores:
        """Writes `scores.json`, and returns the scores."""
        self.write("scores.json", scores)
        return scores


def save_model(model: keras.Model, path: Path) -> None:
    """Saves a Keras model without NumPy 2's warning of each variable."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "__array__ implementation", DeprecationWarning, "keras")
        model.save(path)


def write_json(path: Path, values: Mapping[str, Any]) -> None:
    """Writes a JSON file, completely or not at all."""
    with atomic_path(path) as temporary:
        temporary.write_text(json.dumps(dict(values), indent=2) + "\n", encoding="utf-8")


def read_json(path: Path) -> Any:
    """Reads a JSON file."""
    return json.loads(path.read_text(encoding="utf-8"))


def check_names(option: str, names: Sequence[str], known: Mapping[str, Any]) -> None:
    """Refuses names of rows, tasks or variants that are unknown."""
    if unknown := [name for name in names if name not in known]:
        raise ValueError(f"{option}: expected some of {', '.join(known)}, received {unknown}.")
