"""Pairs without a score: an encoder and a cross-encoder teach each other, as in Trans-Encoder."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from use_st5.models.cross_encoder.model import CrossEncoderModel
from use_st5.models.family import family_of
from use_st5.trainable_encoder import TrainableEncoder
from use_st5.training.arguments import FileArguments
from use_st5.training.history import History
from use_st5.training.model_loading import copy_of
from use_st5.training.rows import training_table
from use_st5.training.tasks import SCORED_PAIRS, UNSCORED_PAIRS
from use_st5.training.trans_encoder import (
    BI_LENGTH,
    DistilledModel,
    PairIds,
    Student,
    TransEncoder,
    best,
    train_trans_encoder,
)
from use_st5.training.validation import Row

if TYPE_CHECKING:
    from use_st5.training.train import TrainingPlan

_NAME, _CROSS_ENCODER = "encoder", "cross_encoder"
# Arguments that have no meaning in cycles.
_WITHOUT_MEANING = (
    *("micro_batch_size", "gradient_accumulation_steps", "lora_rank", "freeze", "head_init"),
    "train_only",
    *("matryoshka_dimensions", "keep", "early_stopping_patience", "optimizer", "warmup_ratio"),
    *("schedule", "max_grad_norm", "evaluation_steps", "evaluate_epochs", "loss"),
    *("steps_per_execution", "prompts"),
)


def train_in_cycles(plan: TrainingPlan, work: Path, strategy: Any) -> History:
    """Trains the encoder of a plan in cycles, and gives it the weights of the best cycle.

    Args:
        plan: The plan, whose pairs have no score.
        work: The folder of checkpoints, from which an interrupted run continues. The best
            cross-encoder is exported into it.
        strategy: As in `Trainer`.

    Returns:
        The evaluations; a step of the history is a cycle.
    """
    base = _reads_pairs(plan)

    def cross() -> CrossEncoderModel:
        model = CrossEncoderModel(copy_of(base.model))
        model.build()
        return model

    def ids(rows: Sequence[Row]) -> PairIds:
        length = plan.arguments.max_length or BI_LENGTH
        return PairIds.of_texts(
            plan.encoder.tokenizer,
            [row["sentence1"] for row in rows],
            [row["sentence2"] for row in rows],
            max_tokens=length,
            max_pair_tokens=2 * length,
            pair_tokenizer=base.tokenizer,
        )

    (validation,) = plan.sets
    rows = [row for file in plan.files for row in training_table(file, plan.held).to_pylist()]
    student = Student(
        name=_NAME,
        bi=lambda: copy_of(plan.encoder.model),
        cross=cross,
        pairs=ids(rows),
        validation=ids(validation.rows),
    )
    models = train_trans_encoder(
        [student],
        np.array([row["score"] for row in validation.rows]),
        work / "checkpoints",
        settings=settings_of_cycles(plan.arguments),
        seed=plan.arguments.seed,
        strategy=strategy,
        jit_compile=False,
    )
    model, best_model = plan.encoder.model, best(models, _NAME, "bi")
    history = History(step=plan.steps, best_step=best_model.cycle, best_score=best_model.spearman)
    start = model.get_weights()

    def load(trained: DistilledModel) -> None:
        if trained.weights is None:  # The start.
            model.set_weights(start)
        else:
            model.load_weights(trained.weights)

    for trained in models:
        if trained.kind == "bi":
            load(trained)
            scores = validation.scores(plan.encoder.encode)
            history.evaluations.append({"step": trained.cycle, **scores})
    load(best_model)
    cross_encoder = TrainableEncoder(cross(), base.tokenizer)
    cross_encoder.model.load_weights(best(models, _NAME, "cross").weights)
    cross_encoder.export(work / _CROSS_ENCODER)
    return history


def settings_of_cycles(arguments: FileArguments) -> TransEncoder:
    """The settings of the cycles; those that no argument sets are the paper's (Table 16)."""
    defaults = FileArguments()
    names = [
        name for name in _WITHOUT_MEANING if getattr(arguments, name) != getattr(defaults, name)
    ]
    if names:
        raise ValueError(
            f"{', '.join(names)}: expected no value, because pairs without a score are trained "
            "in cycles. Leave it out, or give a trained cross-encoder, which scores the pairs, "
            "with --teacher CROSS_ENCODER."
        )
    paper = TransEncoder()
    common: dict[str, Any] = {"steps": arguments.steps}
    if arguments.learning_rate is not None:
        common["learning_rate"] = arguments.learning_rate
    size = arguments.batch_size
    return TransEncoder(
        cycles=arguments.cycles,
        to_cross=dataclasses.replace(paper.to_cross, **common),
        to_bi=dataclasses.replace(paper.to_bi, epochs=arguments.epochs, batch_size=size, **common),
    )


def check_cycles(plan: TrainingPlan) -> None:
    """Checks that the encoder of a plan can be trained in cycles."""
    if tasks := {file.task.name for file in plan.files} - {UNSCORED_PAIRS.name}:
        raise ValueError(
            "Expected only files of pairs without a score, because they are trained in cycles, "
            f"received also {', '.join(sorted(tasks))}. Train twice, first on the one, then on "
            "the other; or give a trained cross-encoder, which scores the pairs, with --teacher "
            "FOLDER."
        )
    settings_of_cycles(plan.arguments)
    if len(plan.sets) != 1 or not plan.sets[0].task.stands_in_for(SCORED_PAIRS):
        raise ValueError(
            "validation: expected one file with the columns sentence1, sentence2 and score, "
            "because scored pairs choose the best cycle. Give --validation FILE."
        )
    _reads_pairs(plan)


def _reads_pairs(plan: TrainingPlan) -> TrainableEncoder:
    """The encoder that cross-encoders are made of: teacher or encoder, which must read pairs."""
    base = plan.encoder if plan.teacher is None else plan.teacher
    if isinstance(base, TrainableEncoder):
        model = family_of(base.model).pair_model(base.model)
        if model is not None:
            return TrainableEncoder(model, base.tokenizer)
    raise ValueError(
        "Expected a BERT or RoBERTa, because pairs without a score need a cross-encoder, "
        f"received a {type(getattr(base, 'model', base)).__name__}. Give a BERT, a RoBERTa or "
        "a trained cross-encoder with --teacher FOLDER. If the two texts of a pair belong "
        "together, give --column anchor=… and --column positive=… instead."
    )
