"""USE-DAN for English on three tasks and a teacher: the model that ships as `use_dan_en`.

The three tasks are the USE paper's (section "Encoders"): Skip-Thought-like on novels,
input-response on dialogues, classification on inference pairs. The fourth learns from
all-MiniLM-L6-v2.

    python -m use_st5.recipes._embed_teacher --data DATA --to TEACHER
    use-st5 train use_dan_en --data DATA --teacher TEACHER --out runs/use_dan_en

DATA holds the corpora of `_permissive_corpora.py` and, for the development metric, the STS
Benchmark (its development split alone is scored). Written are `checkpoints/`, `model/` (the
SavedModel, int8 table) and `scores.json`.

Measured with seed 0 on two cores of a Xeon with AMX that others used too: 35 minutes, 5 GB of
memory, STS-B dev Pearson 0.8233 and Spearman 0.8214 (best of 14 evaluations, at step 5,500); about
30 minutes for the teacher and 5 for the arrays before. The card in `saved_models/use_dan_en` has
the other scores.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import keras

from use_st5._files import atomic_path
from use_st5.export.saved_model import export_saved_model
from use_st5.losses.classification_loss import ClassificationLoss
from use_st5.losses.input_response_loss import InputResponseLoss
from use_st5.losses.skip_thought_loss import SkipThoughtLoss
from use_st5.losses.task_loss import TaskLoss
from use_st5.losses.teacher_loss import TeacherLoss
from use_st5.models.use_dan import USEDAN
from use_st5.recipes._calibration import Calibration, calibrate
from use_st5.recipes._minilm_teacher import DIMENSION
from use_st5.recipes._stsb_dev import padded_encoder, read_stsb_dev, stsb_dev_scores
from use_st5.recipes._use_dan_data import TASKS, Arrays, prepare_tasks
from use_st5.training.array_data import ArrayData
from use_st5.training.task import Task
from use_st5.training.trainer import Trainer

DECODER_VOCABULARY = 4_000
# Task: (rate in the draw, batch size).
MIXTURE = {
    "skip_thought": (0.02, 128),
    "input_response": (0.05, 512),
    "inference": (0.05, 512),
    "teacher": (0.88, 2048),
}
# A task's rate is shared among its parts by number of examples times these (1 if not named): single
# words and short spans are many and soon learnt.
PART_WEIGHTS = {"teacher_short": 0.5, "teacher_medium": 1.0, "teacher_long": 1.5}
STEPS = 7_000
LEARNING_RATE, WARMUP_STEPS = 5e-3, 200
EVALUATE_EVERY = 500
# By hand, a factor at a time, on the training and development splits of the STS Benchmark, where
# they brought 2.7 and 2.0 points of Spearman's correlation.
CALIBRATION = Calibration(frequent=0.75, numbers=1.7, bigrams=0.5, unknown=2.0, skip=2.0)


def run(
    data: Path,
    output: Path,
    *,
    seed: int = 0,
    steps: int | None = None,
    teacher: Path | None = None,
    resume: bool = True,
    tasks: Sequence[str] = TASKS,
    prepared: Path | None = None,
    calibration: Calibration = CALIBRATION,
) -> dict[str, float]:
    """Trains, calibrates, exports and scores on the development split.

    Args:
        data: Folder of the corpora.
        output: Folder for checkpoints, the SavedModel and the scores.
        seed: Of the initial weights, the draw of tasks and the shuffling.
        steps: Optimizer steps; the recipe's own by default.
        teacher: Folder of the teacher's vectors; those that are missing are computed.
        resume: Whether an interrupted run in `output` continues.
        tasks: Which tasks to train on (rates are relative, so any subset will do; with none the
            model stays as it was drawn).
        prepared: Folder of vocabulary and id arrays, shared by runs; in `output` by default.
        calibration: Factors on groups of weights, applied after training.

    Returns:
        Development scores by name.
    """
    if unknown := set(tasks) - set(TASKS):
        raise ValueError(f"Expected tasks among {TASKS}. Received: {sorted(unknown)}")
    checkpoints = output / "checkpoints"
    if not resume and checkpoints.exists():
        raise FileExistsError(f"{checkpoints} exists. Remove it, or let the run resume.")
    development = read_stsb_dev(data)
    vectorizer, parts = prepare_tasks(
        data, tasks, prepared or output / "prepared", teacher or output / "teacher"
    )
    keras.utils.set_random_seed(seed)
    model = USEDAN.from_preset("use_dan_en", num_embeddings=vectorizer.vocabulary.size)
    model.build()
    encode = padded_encoder(model, vectorizer)
    each = [task for name in tasks for task in _tasks(name, parts[name])]
    if each:
        evaluate = partial(stsb_dev_scores, encode, development)
        _train(model, each, evaluate, steps or STEPS, seed, checkpoints)
    calibrate(model, vectorizer.vocabulary, calibration)
    facts = {"languages": ["en"], "license": "Apache-2.0", "seed": seed, "tasks": [*tasks]}
    export_saved_model(
        model, vectorizer, output / "model", name="use_dan_en", storage="int8", metadata=facts
    )
    scores = stsb_dev_scores(encode, development)
    with atomic_path(output / "scores.json") as temporary:
        temporary.write_text(json.dumps(scores, indent=2) + "\n", encoding="utf-8")
    return scores


def _train(
    model: USEDAN,
    tasks: list[Task],
    evaluate: Callable[[], dict[str, float]],
    steps: int,
    seed: int,
    checkpoints: Path,
) -> None:
    """Trains the model and leaves it with the weights that were best on the development split."""
    trainer = Trainer(
        model,
        tasks,
        _optimizer(steps),
        folder=checkpoints,
        seed=seed,
        evaluate=evaluate,
        evaluate_every=min(EVALUATE_EVERY, steps),
        checkpoint_every=min(EVALUATE_EVERY, steps),
        monitor="stsb_dev_pearson",
        tensorboard=True,
    )
    trainer.run(steps)
    trainer.restore_best()


def _tasks(name: str, parts: dict[str, Arrays]) -> list[Task]:
    """The task, once for each part of its data; the parts share the loss and the rate."""
    losses: dict[str, Callable[[], TaskLoss]] = {
        "skip_thought": lambda: SkipThoughtLoss(
            vocabulary_size=DECODER_VOCABULARY, hidden_dim=128, intermediate_dim=512
        ),
        "input_response": InputResponseLoss,
        "inference": lambda: ClassificationLoss(num_classes=3),
        "teacher": lambda: TeacherLoss(
            teacher_dim=DIMENSION, similarity_weight=10.0, ranking_weight=1.0, temperature=0.1
        ),
    }
    loss = losses[name]()
    rate, batch_size = MIXTURE[name]
    data = {part: ArrayData(arrays) for part, arrays in parts.items()}
    weights = {part: len(each) * PART_WEIGHTS.get(part, 1.0) for part, each in data.items()}
    rates = {part: rate * weight / sum(weights.values()) for part, weight in weights.items()}
    return [
        Task(part, loss, each, rate=rates[part], batch_size=batch_size)
        for part, each in data.items()
    ]


def _optimizer(steps: int) -> keras.optimizers.Optimizer:
    warmup_steps = min(WARMUP_STEPS, steps // 10)
    schedule = keras.optimizers.schedules.CosineDecay(
        initial_learning_rate=0.0,
        warmup_target=LEARNING_RATE,
        warmup_steps=warmup_steps,
        decay_steps=max(1, steps - warmup_steps),
    )
    return keras.optimizers.Adam(schedule, beta_2=0.98, global_clipnorm=1.0)
