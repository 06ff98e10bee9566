"""One run of an experiment: its folders, its parts and its files.

An experiment's `run` has three parts: texts become arrays, arrays train a model, the model is
exported and scored. One machine does the parts one after the other, or several machines do one part
each.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict

import keras

from use_st5.hub.model_manifest import check_replaceable
from use_st5.io.files import atomic_path, sole_writer, write_json
from use_st5.io.records import read_record
from use_st5.io.remote_files import as_written, cached_path, exists, open_local, remote_path
from use_st5.models.inference import in_float32
from use_st5.training.checkpoints import saving_quietly

Part = Literal["prepare", "train", "export"]
Scores = dict[str, float]
PARTS: tuple[Part, ...] = ("prepare", "train", "export")
# A run of fewer steps is a trial: it needs only the rows of its batches; its scores say nothing.
TRIAL_STEPS = 100
_MODEL, _FACTS, _SCORES = "encoder.keras", "training.json", "scores.json"


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
        data: Folder of the corpora and evaluation sets; a remote folder (gs://) is copied.
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
        parts: The parts that the experiment has.

    Attributes:
        writes: Whether this process writes the files: with several workers, only one does.

    Raises:
        ValueError: `steps` is below 1, or Keras's backend cannot run the part, the strategy or the
            batch files.
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
        parts: Sequence[Part] = PARTS,
    ) -> None:
        if steps is not None and steps < 1:
            raise ValueError(f"Expected steps to be 1 or more. Received: {steps}")
        self._parts = parts_to_run(part, parts)
        _check_backend(part, strategy, batch_files)
        self.data, self.output = cached_path(data), output
        self.seed, self.steps = seed, steps
        self.prepared = prepared or output / "prepared"
        self.checkpoints = output / "checkpoints"
        self.batch_files = batch_files
        self.strategy: Any = None
        self._resume, self.writes = resume, True
        if strategy is not None:
            from use_st5.training import is_chief, shared_strategy

            self.strategy = shared_strategy(strategy)
            self.writes = is_chief(self.strategy)

    def does(self, part: Part) -> bool:
        """Whether the run does the part."""
        return part in self._parts

    @property
    def replicas(self) -> int:
        """The number of devices that share a batch."""
        return 1 if self.strategy is None else self.strategy.num_replicas_in_sync

    @property
    def trial_steps(self) -> int | None:
        """The steps of a trial; None: the run is not a trial."""
        return self.steps if self.steps is not None and self.steps < TRIAL_STEPS else None

    @contextlib.contextmanager
    def begun(self, *exported: str) -> Iterator[None]:
        """Makes this process the only one that writes the output folder, for a block.

        Args:
            *exported: Folders in it that the run replaces; "model" by default.

        Raises:
            FileExistsError: There are checkpoints, and the run must not resume; or a folder to
                replace holds something other than a model.
            BlockingIOError: Another process is writing there.
        """
        lock = sole_writer(self.output, inside=True, remote=True)
        with lock if self.writes else contextlib.nullcontext():
            for name in exported or ("model",):
                check_replaceable(self.output / name)
            if not self._resume and exists(self.checkpoints):
                raise FileExistsError(
                    f"{as_written(self.checkpoints)} exists. Remove it, or let the run resume."
                )
            yield

    def scope(self) -> contextlib.AbstractContextManager:
        """The context in which models and losses are made."""
        return contextlib.nullcontext() if self.strategy is None else self.strategy.scope()

    def keep(self, model: keras.Model) -> None:
        """Writes the trained model as `encoder.keras`."""
        if self.writes:
            with atomic_path(self.output / _MODEL) as temporary, saving_quietly():
                model.save(temporary)

    def kept(self) -> keras.Model:
        """The model that `keep` wrote, with float32 computations."""
        with open_local(self.output / _MODEL) as path:
            return in_float32(keras.saving.load_model(path, compile=False))

    def write(self, name: str, values: Mapping[str, Any]) -> None:
        """Writes values as a JSON file of the output folder."""
        if self.writes:
            write_json(self.output / name, values)

    def write_facts(self, **facts: Any) -> None:
        """Writes facts about the training; it is the last action of a training."""
        self.write(_FACTS, {**facts, "seed": self.seed})

    def facts(self) -> dict[str, Any]:
        """The facts that `write_facts` wrote; the seed is that of the training, not of this run.

        Raises:
            FileNotFoundError: The training is not done.
        """
        path = self.output / _FACTS
        if not exists(path):
            raise FileNotFoundError(
                f"Expected {as_written(path)}, which the training writes when it is done. Run the "
                f"same command with --part train --out {as_written(path.parent)}"
            )
        return read_record(path, dict[str, Any], remedy="Train the encoder again.")

    def write_scores(self, scores: Scores) -> Scores:
        """Writes `scores.json`, and returns the scores."""
        self.write(_SCORES, scores)
        return scores

    def check_local(self, **folders: Path) -> None:
        """Refuses remote folders that the experiment writes piece by piece.

        Args:
            **folders: Option → folder.

        Raises:
            ValueError: A folder is remote.
        """
        for name, folder in folders.items():
            if remote := remote_path(folder):
                raise ValueError(
                    f"{remote}: expected a local folder, since text and a teacher's vectors are "
                    f"written piece by piece. Name one: --{name} FOLDER."
                )


def parts_to_run(part: Part | None, parts: Sequence[Part]) -> tuple[Part, ...]:
    """The requested part, or all parts.

    Preparation and export need TensorFlow; training runs under JAX as well.

    Args:
        part: The requested part; None: all parts.
        parts: The parts that the experiment has.

    Raises:
        ValueError: There is no such part, or the backend of Keras cannot run it.
    """
    if part is not None and part not in parts:
        raise ValueError(f"Unknown part: {part!r}. Expected one of {(*parts,)}.")
    backend = keras.config.backend()
    if backend not in ("tensorflow", "jax"):
        raise ValueError(
            "Expected Keras's backend to be tensorflow or jax, which alone have a training loop "
            f"here: set KERAS_BACKEND. Received: {backend}"
        )
    if part != "train" and backend != "tensorflow":
        raise ValueError(
            "An experiment, but for its part 'train', needs Keras on TensorFlow: unset "
            f"KERAS_BACKEND before Python starts. Received: {backend}"
        )
    return (*parts,) if part is None else (part,)


def _check_backend(
    part: Part | None, strategy: str | None, batch_files: str | os.PathLike[str] | None
) -> None:
    """Checks that the options fit Keras's backend and the part.

    Raises:
        ValueError: An option does not.
    """
    if (backend := keras.config.backend()) != "tensorflow":
        for name, value in (("strategy", strategy), ("batch_files", batch_files)):
            if value is not None:
                raise ValueError(
                    f"{name}: expected None, because it needs TensorFlow. Received: {value} under "
                    f"{backend}"
                )
    if strategy == "multi_worker" and part != "train":
        raise ValueError(
            "multi_worker: expected --part train. First run --part prepare on one machine, with "
            "an output folder that all machines see."
        )
