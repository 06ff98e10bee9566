"""The training of encoders by a teacher, the USE paper's three tasks and Sentence-T5's loss."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import keras

from use_st5.losses.classification_loss import ClassificationLoss
from use_st5.losses.contrastive_loss import ContrastiveLoss
from use_st5.losses.input_response_loss import InputResponseLoss
from use_st5.losses.skip_thought_loss import SkipThoughtLoss
from use_st5.losses.task_loss import TaskLoss
from use_st5.losses.teacher_loss import TeacherLoss
from use_st5.recipes._minilm_teacher import DIMENSION
from use_st5.recipes._related_sentences import GROUP_SIZE
from use_st5.recipes._use_data import Arrays
from use_st5.training.array_data import ArrayData
from use_st5.training.task import Task
from use_st5.training.trainer import Trainer

DECODER_VOCABULARY = 4_000


@dataclasses.dataclass(frozen=True)
class TrainingSettings:
    """How a recipe trains.

    Attributes:
        mixture: Task → (rate in the draw, batch size).
        part_weights: A task's rate is shared among its parts by number of examples times these, 1
            for parts that are not named.
        learning_rate: Adam's peak rate; it falls by a cosine after the warm-up.
        warmup_steps: Steps of the warm-up, at most a tenth of the run.
        evaluate_every: Steps between evaluations.
        hint_weight: Of the teacher's hints in its loss, where there are any.
        best: Whether the weights of the best evaluation are taken, or those of the last step.
        xla: Whether XLA compiles the steps; "auto" does where it can.
    """

    mixture: Mapping[str, tuple[float, int]]
    part_weights: Mapping[str, float]
    learning_rate: float
    warmup_steps: int
    evaluate_every: int
    hint_weight: float = 1.0
    best: bool = True
    xla: bool | str = "auto"


def train(
    model: keras.Model,
    parts: Mapping[str, dict[str, Arrays]],
    settings: TrainingSettings,
    *,
    evaluate: Callable[[], dict[str, float]],
    steps: int,
    seed: int,
    checkpoints: Path,
) -> None:
    """Trains the model and leaves it with its best or its last weights.

    Args:
        model: Built.
        parts: Task → part → arrays.
        settings: How to train.
        evaluate: Gives the scores on the development split, `stsb_dev_pearson` among them.
        steps: Optimizer steps.
        seed: Of the draw of tasks and the shuffling.
        checkpoints: Folder of the checkpoints; a run there continues.
    """
    trainer = Trainer(
        model,
        [task for name in parts for task in _tasks(name, parts[name], settings)],
        _optimizer(settings, steps),
        folder=checkpoints,
        seed=seed,
        jit_compile=settings.xla,
        evaluate=evaluate,
        evaluate_every=min(settings.evaluate_every, steps),
        checkpoint_every=min(settings.evaluate_every, steps),
        monitor="stsb_dev_pearson",
        tensorboard=True,
    )
    trainer.run(steps)
    if settings.best:
        trainer.restore_best()


def _tasks(name: str, parts: dict[str, Arrays], settings: TrainingSettings) -> list[Task]:
    """The task, once for each part of its data; the parts share the loss and the rate."""
    teacher = partial(
        TeacherLoss,
        teacher_dim=DIMENSION,
        similarity_weight=10.0,
        ranking_weight=1.0,
        temperature=0.1,
        hint_dim=DIMENSION if any("hint" in arrays for arrays in parts.values()) else None,
        hint_weight=settings.hint_weight,
    )
    # Warmer than the paper's 0.01: beside a teacher the loss shall not stretch the cosines.
    contrastive = partial(
        ContrastiveLoss, temperature=0.05, hard_negatives=True, bidirectional=True
    )
    losses: dict[str, Callable[[], TaskLoss]] = {
        "skip_thought": lambda: SkipThoughtLoss(
            vocabulary_size=DECODER_VOCABULARY, hidden_dim=128, intermediate_dim=512
        ),
        "input_response": InputResponseLoss,
        "inference": lambda: ClassificationLoss(num_classes=3),
        "teacher": teacher,
        "related": teacher,
        "answers": contrastive,
        "triplets": contrastive,
    }
    loss = losses[name]()
    rate, batch_size = settings.mixture[name]
    group_size = GROUP_SIZE if name == "related" else 1
    data = {part: ArrayData(arrays, group_size=group_size) for part, arrays in parts.items()}
    weights = {
        part: len(each) * settings.part_weights.get(part, 1.0) for part, each in data.items()
    }
    rates = {part: rate * weight / sum(weights.values()) for part, weight in weights.items()}
    return [
        Task(part, loss, each, rate=rates[part], batch_size=batch_size)
        for part, each in data.items()
    ]


def _optimizer(settings: TrainingSettings, steps: int) -> keras.optimizers.Optimizer:
    warmup_steps = min(settings.warmup_steps, steps // 10)
    schedule = keras.optimizers.schedules.CosineDecay(
        initial_learning_rate=0.0,
        warmup_target=settings.learning_rate,
        warmup_steps=warmup_steps,
        decay_steps=max(1, steps - warmup_steps),
    )
    return keras.optimizers.Adam(schedule, beta_2=0.98, global_clipnorm=1.0)
