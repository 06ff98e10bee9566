"""The course of a recipe with a teacher, from text to scores."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import keras

from use_st5.recipes._run_folder import checkpoints_folder, write_scores
from use_st5.recipes._stsb_dev import padded_encoder, read_stsb_dev, stsb_dev_scores
from use_st5.recipes._use_data import DataSettings, UseData, check_tasks
from use_st5.recipes._use_training import TrainingSettings, train
from use_st5.trainable_encoder import TrainableEncoder


@dataclasses.dataclass(frozen=True)
class UseRecipe:
    """What one recipe has of its own.

    Attributes:
        name: Of the exported model.
        data: What the text becomes.
        training: How to train.
        steps: Optimizer steps.
        initial: Makes the model, built, from the text and the seed.
        finished: Makes the model that is exported, of float32, out of the trained one.
        max_length: Where the exported model cuts texts; None: its own limit, if it has one.
    """

    name: str
    data: DataSettings
    training: TrainingSettings
    steps: int
    initial: Callable[[UseData, int], keras.Model]
    finished: Callable[[UseData, keras.Model], keras.Model]
    max_length: int | None = None

    def run(
        self,
        data: Path,
        output: Path,
        *,
        seed: int,
        steps: int | None,
        teacher: Path | None,
        resume: bool,
        tasks: Sequence[str],
        prepared: Path | None,
    ) -> dict[str, float]:
        """Trains, exports and scores; the arguments are those of the recipes' own `run`."""
        check_tasks(tasks, self.training.mixture)
        checkpoints = checkpoints_folder(output, resume=resume)
        development = read_stsb_dev(data)
        text = UseData(
            data, self.data, prepared or output / "prepared", teacher or output / "teacher"
        )
        parts = {task: text.parts(task) for task in tasks}
        keras.utils.set_random_seed(seed)
        model = self.initial(text, seed)
        if parts:
            encode = padded_encoder(model, text.vectorizer)
            train(
                model,
                parts,
                self.training,
                evaluate=partial(stsb_dev_scores, encode, development),
                steps=steps or self.steps,
                seed=seed,
                checkpoints=checkpoints,
            )
        model = self.finished(text, model)
        facts = {"languages": ["en"], "license": "Apache-2.0", "seed": seed, "tasks": [*tasks]}
        TrainableEncoder(
            model, text.vectorizer, name=self.name, max_length=self.max_length, metadata=facts
        ).export(output / "model", storage="int8")
        scores = stsb_dev_scores(padded_encoder(model, text.vectorizer), development)
        write_scores(output, scores)
        return scores
