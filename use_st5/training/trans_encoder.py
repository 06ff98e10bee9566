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
    """How one kind of model learns the scores of the other.

    Attributes:
        objective: "bce", the soft binary cross-entropy of Eq. 2, or "mse", the squared error of
            Eq. 3.
        learning_rate: The highest rate of AdamW.
        batch_size: Pairs of a step.
        epochs: Passes over the pairs.
        steps: Steps in place of the epochs; None: those of the epochs.
        warmup_share: Share of the steps in which the rate rises; then it falls in a line to 0.
        both_orders: Whether each pair is learned in both orders.
        freeze: What of the model stays as it is, as in `frozen_parts`; of a cross-encoder, what of
            the encoder below its head.
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
    """The settings of a course; the defaults are the paper's for STS (Table 16) and its code's.

    Attributes:
        cycles: Cycles; the best model of each kind by development is the result.
        to_cross: How a cross-encoder learns the bi-encoders' cosines.
        to_bi: How a bi-encoder learns the cross-encoders' scores.
        refresh: Whether each model starts anew from its first weights in each cycle; else it goes
            on from the weights of the other kind (the paper's Table 13).
        standard: Whether bi-encoders learn from bi-encoders, without a cross-encoder: the standard
            self-distillation that the paper's Table 14 compares.
        evaluate_every: Steps between two looks at the development pairs; there is another one at
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
    """One of the models that teach and learn: a bi-encoder, and the cross-encoder of its kind.

    Attributes:
        name: Short name in files.
        bi: Makes the bi-encoder with the weights it starts from, built.
        cross: Makes the cross-encoder with the weights it starts from, built; None where no
            cross-encoder of its kind takes part (a USE-DAN): then it learns from the others'.
        pairs: The pairs without labels, as its ids; the same pairs for all learners.
        development: The development pairs, as its ids.
        bi_rate: What the learning rate of a lesson is multiplied with for its bi-encoder: a small
            encoder that was trained from nothing learns faster than a BERT.
    """

    name: str
    bi: Callable[[], keras.Model]
    cross: Callable[[], keras.Model] | None
    pairs: PairIds
    development: PairIds
    bi_rate: float = 1.0


@dataclasses.dataclass(frozen=True)
class Taught:
    """One model of the course, and how it did.

    Attributes:
        learner: Its name.
        kind: "bi" or "cross".
        cycle: From 1; 0 is the bi-encoder that the course started from.
        spearman: On the development pairs, in −1 … 1.
        step: Of the training, whose weights these are.
        weights: Its weights, for `keras.Model.load_weights`; None in cycle 0.
    """

    learner: str
    kind: Kind
    cycle: int
    spearman: float
    step: int
    weights: Path | None


def best(taught: Sequence[Taught], learner: str, kind: Kind) -> Taught:
    """The best of a learner's models of a kind by development, the earlier of equal ones."""
    own = [each for each in taught if (each.learner, each.kind) == (learner, kind)]
    return max(own, key=lambda each: (each.spearman, -each.cycle))
