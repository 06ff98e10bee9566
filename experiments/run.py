"""One run of an experiment: texts become arrays, arrays a model, which is exported and scored."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import keras

from use_st5.io import atomic_path, sole_writer

Scores = dict[str, float]


@dataclasses.dataclass
class Run:
    """One run of an experiment; an interrupted one continues.

    Args:
        data: Folder of the corpora and evaluation sets.
        output: Folder for arrays, checkpoints, the exported encoder and the scores.
        seed: Seed of the initial weights, the draw of tasks and the shuffling.
        steps: Optimizer steps of each training; the experiment's own by default.
        part: "prepare" writes arrays, "train" trains a model on them, "export" exports and scores
            it; None: all parts.
        strategy: The devices to train on, as in `shared_strategy`; None: the backend's own device.
        prepared: Folder of vocabulary and arrays, shared by runs; in `output` by default.
        batch_files: Folder in which workers in other processes find the batches, as in `Trainer`.
    """

    data: Path
    output: Path
    _: dataclasses.KW_ONLY
    seed: int = 0
    steps: int | None = None
    part: Literal["prepare", "train", "export"] | None = None
    strategy: str | Any = None
    prepared: Path | Any = None
    batch_files: str | None = None

    def __post_init__(self) -> None:
        self.parts = ("prepare", "train", "export") if self.part is None else (self.part,)
        one_machine = keras.config.backend() == "tensorflow" and self.strategy != "multi_worker"
        if self.part != "train" and not one_machine:
            raise ValueError("expected --part train without TensorFlow or on several machines")
        self.prepared = self.prepared or self.output / "prepared"
        self.checkpoints = self.output / "checkpoints"
        self.writes = True
        if self.strategy:
            from use_st5.training import is_chief, shared_strategy  # They import TensorFlow.

            self.strategy = shared_strategy(self.strategy)
            self.writes = is_chief(self.strategy)  # With several workers, only one writes.

    def begun(self) -> contextlib.AbstractContextManager[None]:
        """Makes this process the only one that writes the output folder, for a block."""
        return sole_writer(self.output, inside=True) if self.writes else contextlib.nullcontext()

    def scope(self) -> Any:
        """The context in which models and losses are made."""
        return getattr(self.strategy, "scope", contextlib.nullcontext)()

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

    def write(self, name: str, values: dict[str, Any]) -> dict[str, Any]:
        """Writes values as a JSON file of the output folder, and returns them."""
        if self.writes:
            write_json(self.output / name, values)
        return values


def write_json(path: Path, values: Mapping[str, Any]) -> None:
    """Writes a JSON file, completely or not at all."""
    with atomic_path(path) as temporary:
        temporary.write_text(json.dumps(dict(values), indent=2) + "\n", encoding="utf-8")


def read_json(path: Path) -> Any:
    """Reads a JSON file."""
    return json.loads(path.read_text(encoding="utf-8"))
