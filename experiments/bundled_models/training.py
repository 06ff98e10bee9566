"""Training and export of a bundled model, which all of them share."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import keras

from experiments.bundled_models.teacher import HINT_DIM, TEACHER_DIM
from experiments.corpus_tasks import CorpusTask, open_tasks, train_tasks
from experiments.run import Run, Scores
from use_st5 import TrainableEncoder
from use_st5.losses import TeacherLoss
from use_st5.training import TrainingArguments

# The teachers' vectors, and the hints from an inner layer of one of them.
TEACHER_LOSS = partial(
    TeacherLoss,
    teacher_dim=TEACHER_DIM,
    similarity_weight=10.0,
    ranking_weight=1.0,
    temperature=0.1,
    hint_dim=HINT_DIM,
    hint_weight=1.5,
)
METADATA = {"languages": ["en"], "license": "Apache-2.0"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Stage:
    """One training of a model.

    Attributes:
        tasks: What it learns.
        args: How to train.
        name: Of the folder of its checkpoints.
    """

    tasks: Sequence[CorpusTask]
    args: TrainingArguments
    name: str = ""


def train_model(
    run: Run,
    make: Callable[[], TrainableEncoder],
    stages: Sequence[Stage],
    score: Any,
    **options: Any,
) -> None:
    """Trains an encoder in stages, and keeps its model and its facts.

    Args:
        run: The run, whose arrays are prepared.
        make: Makes the encoder, in the scope of the run's strategy and after its seed is set.
        stages: One after the other; those without tasks leave it as it is.
        score: Evaluates by the development split of STS-B.
        **options: Further ones of `Trainer`.
    """
    stages = [stage for stage in stages if stage.tasks]
    arrays = [open_tasks(run, stage.tasks) for stage in stages]
    keras.utils.set_random_seed(run.seed)
    with run.scope():
        encoder = make()
    histories = {}
    options |= {"evaluate": score, "monitor": "stsb_dev_pearson"}
    for stage, its_arrays in zip(stages, arrays, strict=True):
        history = train_tasks(
            run, encoder, stage.tasks, its_arrays, stage.args, stage=stage.name, **options
        )
        histories[stage.name] = history.to_state()
    if histories:
        run.write("history.json", histories)
    run.keep(encoder.model)
    run.write_facts(**METADATA, tasks=[task.name for stage in stages for task in stage.tasks])


def export_model(run: Run, encoder: TrainableEncoder, score: Any) -> Scores:
    """Exports an encoder in int8, and writes its scores before the export."""
    scores = score(encoder.encode)
    encoder.export(run.output / "model", precision="int8")
    return run.write_scores(scores)
