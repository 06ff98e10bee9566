"""One run of an experiment: its folders, its parts and its files.

An experiment's `run` has three parts: texts become arrays, arrays train a model, the model is
exported and scored. One machine does all of them, or several machines do one part each.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, TypedDict

import keras

from use_st5.io import atomic_path, sole_writer

Part = Literal["prepare", "train", "export"]
Scores = dict[str, float]


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


@dataclasses.dataclass
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
    """

    data: Path
    output: Path
    seed: int = 0
    steps: int | None = None
    resume: bool = True
    part: Part | None = None
    strategy: Any = None
    prepared: Any = None
    batch_files: str | None = None

    def __post_init__(self) -> None:
        if self.part != "train" and keras.config.backend() != "tensorflow":
            raise ValueError("Without TensorFlow only --part train runs: unset KERAS_BACKEND.")
        if self.part != "train" and self.strategy == "multi_worker":
            raise ValueError("multi_worker: expected --part train, after --part prepare.")
        self.prepared = self.prepared or self.output / "prepared"
        self.checkpoints = self.output / "checkpoints"
        self.writes = True
        if self.strategy:
            from use_st5.training import is_chief, shared_strategy  # They import TensorFlow.

            self.strategy = shared_strategy(self.strategy)
            self.writes = is_chief(self.strategy)  # With several workers, only one writes.

    def does(self, part: Part) -> bool:
        """Whether the run does the part."""
        return self.part in (None, part)

    @contextlib.contextmanager
    def begun(self) -> Iterator[None]:
        """Makes this process the only one that writes the output folder, for a block."""
        with sole_writer(self.output, inside=True) if self.writes else contextlib.nullcontext():
            if not self.resume and self.checkpoints.exists():
                raise FileExistsError(f"{self.checkpoints} exists: remove it, or use --resume.")
            yield

    def scope(self) -> contextlib.AbstractContextManager:
        """The context in which models and losses are made."""
        return contextlib.nullcontext() if self.strategy is None else self.strategy.scope()

    def keep(self, model: keras.Model) -> None:
        """Writes the trained model as `encoder.keras`."""
        if self.writes:
            with atomic_path(self.output / "encoder.keras") as temporary:
                model.save(temporary)

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
        """Writes facts about the training as its last action: the export needs them."""
        self.write("training.json", {**facts, "seed": self.seed})

    def facts(self) -> dict[str, Any]:
        """The facts that `write_facts` wrote; the seed is that of the training, not of this run."""
        return read_json(self.output / "training.json")

    def write_scores(self, scores: Scores) -> Scores:
        """Writes `scores.json`, and returns the scores."""
        self.write("scores.json", scores)
        return scores


def write_json(path: Path, values: Mapping[str, Any]) -> None:
    """Writes a JSON file, completely or not at all."""
    with atomic_path(path) as temporary:
        temporary.write_text(json.dumps(dict(values), indent=2) + "\n", encoding="utf-8")


def read_json(path: Path) -> Any:
    """Reads a JSON file."""
    return json.loads(path.read_text(encoding="utf-8"))
