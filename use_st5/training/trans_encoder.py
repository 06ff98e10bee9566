"""Trans-Encoder (Liu et al. 2022, arXiv 2109.13059): its settings, models and results.

`use_st5.training.teaching` runs it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import keras

from use_st5.training.frozen_parts import ModelPart
from use_st5.training.pair_scores import Kind, PairIds

Objective = Literal["bce", "mse"]

# Ids of a text in training; pairs have both texts and the special tokens (Table 16).
BI_LENGTH, CROSS_LENGTH = 32, 64


@dataclasses.dataclass(frozen=True, kw_only=True)
class Lesson:
    """The settings for training one kind of model on the scores of the other.

    Attributes:
        objective: "bce", the soft binary cross-entropy of Eq. 2, or "mse", the squared error of
            Eq. 3.
        learning_rate: The peak learning rate of AdamW.
        batch_size: Pairs of a step.
        epochs: Passes over the pairs.
        steps: Steps instead of epochs; None: the steps of the epochs.
        warmup_share: Share of the steps with a rising learning rate; then it falls linearly to 0.
        both_orders: Whether each pair is used in both orders.
        freeze: Parts of the model that are not trained, as in `frozen_parts`; for a cross-encoder,
            parts of the encoder below its head.
    """

    objective: Objective
    learning_rate: float
    batch_size: int
    epochs: float
    steps: int | None = None
    warmup_share: float = 0.0
    both_orders: bool = False
    freeze: tuple[ModelPart, ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True)
class TransEncoder:
    """The settings of Trans-Encoder; the defaults are those of the paper for STS and of its code.

    Attributes:
        cycles: Number of cycles; the result is the best model of each kind by the validation pairs.
        to_cross: The training of a cross-encoder on the bi-encoders' cosines.
        to_bi: The training of a bi-encoder on the cross-encoders' scores.
        refresh: Whether each model starts from its first weights in each cycle. If not, it starts
            from the weights of the other kind (the paper's Table 13).
        standard: Whether bi-encoders are trained on the scores of bi-encoders, without a
            cross-encoder: the standard self-distillation of the paper's Table 14.
        evaluate_every: Steps between two evaluations on the validation pairs; there is one more at
            the end of each epoch (section 4).
    """

    cycles: int = 3
    to_cross: Lesson = Lesson(
        objective="bce",
        learning_rate=2e-5,
        batch_size=32,
        epochs=1,
        warmup_share=0.1,
        both_orders=True,
    )
    to_bi: Lesson = Lesson(objective="mse", learning_rate=5e-5, batch_size=128, epochs=10)
    refresh: bool = True
    standard: bool = False
    evaluate_every: int = 200


@dataclasses.dataclass(frozen=True, kw_only=True)
class Learner:
    """A bi-encoder that is trained, and a cross-encoder made of the same model.

    Attributes:
        name: Short name in files.
        bi: Makes the built bi-encoder with its first weights.
        cross: Makes the built cross-encoder with its first weights. None, for example for a
            USE-DAN: the bi-encoder is trained on the scores of the other cross-encoders.
        pairs: The pairs without labels, as its ids; the same pairs for all learners.
        development: The validation pairs, as its ids.
        bi_rate: Factor of the learning rate of its bi-encoder. A small encoder that was trained
            from random weights needs a higher learning rate than a BERT.
    """

    name: str
    bi: Callable[[], keras.Model]
    cross: Callable[[], keras.Model] | None
    pairs: PairIds
    development: PairIds
    bi_rate: float = 1.0


@dataclasses.dataclass(frozen=True)
class Taught:
    """One trained model, and its score.

    Attributes:
        learner: Its name.
        kind: "bi" or "cross".
        cycle: From 1; 0 is the bi-encoder before the training.
        spearman: On the validation pairs, in −1 … 1.
        step: The step of the training with these weights.
        weights: Its weights, for `keras.Model.load_weights`; None in cycle 0.
    """

    learner: str
    kind: Kind
    cycle: int
    spearman: float
    step: int
    weights: Path | None


def best(taught: Sequence[Taught], learner: str, kind: Kind) -> Taught:
    """The best model of one kind and learner by the validation pairs; of equal ones the earlier."""
    own = [each for each in taught if (each.learner, each.kind) == (learner, kind)]
    return max(own, key=lambda each: (each.spearman, -each.cycle))
