"""Pairs of texts with a score, for a cross-encoder, which reads both at once."""

from __future__ import annotations

from typing import Any, Literal

import keras
from keras import ops

from use_st5.losses.scored_pair_loss import soft_cross_entropy
from use_st5.losses.task_loss import LOCAL, Feature, Gather, TaskLoss

Objective = Literal["bce", "mse"]
OBJECTIVES: tuple[Objective, ...] = ("bce", "mse")


@keras.saving.register_keras_serializable(package="use_st5")
class PairLogitLoss(TaskLoss):
    """`−mean yᵢ·log σ(xᵢ) + (1 − yᵢ)·log(1 − σ(xᵢ))`, `x` the logit of a pair.

    Trans-Encoder's step from the bi- to the cross-encoder (Liu et al. 2022, arXiv 2109.13059,
    Eq. 2): the scores are another model's, so they lie anywhere between 0 and 1. "mse" is
    `mean (xᵢ − yᵢ)²`, with which the paper saw the cross-encoder copy its labels (Table 8).

    Inputs:
        | feature | kind |
        |---|---|
        | pair | ids `[batch, length]` of both texts (`padded_pairs`) |
        | score | floats `[batch]` in 0 … 1 |

    Relations:
        A bi-encoder learns from the same pairs by `ScoredPairLoss`.

    Example:
        >>> data = ArrayData({"pair": ids, "score": scores})
        >>> task = Task("pairs", PairLogitLoss(), data)
        >>> task.check_features()

    Args:
        objective: "bce" or "mse".

    Raises:
        ValueError: The objective is unknown.
    """

    metric_names = ("score_error",)

    def __init__(self, *, objective: Objective = "bce", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if objective not in OBJECTIVES:
            raise ValueError(f"objective: expected one of {OBJECTIVES}, received {objective!r}.")
        self.objective = objective

    @property
    def features(self) -> tuple[Feature, ...]:
        """The pair and the score."""
        return Feature("pair", "ids"), Feature("score", "score")

    def build(self, embedding_shape: tuple[int | None, int]) -> None:
        """Holds the encoder to one number a pair; the loss has no weights.

        Raises:
            ValueError: It gives a vector.
        """
        if embedding_shape[-1] != 1:
            raise ValueError(
                "PairLogitLoss: expected a cross-encoder, which gives one number for a pair, "
                f"received an encoder of dimension {embedding_shape[-1]}."
            )

    def call(
        self,
        encoder: keras.Model,
        batch: dict[str, Any],
        training: bool = False,
        gather: Gather = LOCAL,
    ) -> tuple[Any, dict[str, Any]]:
        del gather  # Rows do not meet here.
        logits = ops.cast(encoder(batch["pair"], training=training), "float32")[:, 0]
        scores = ops.cast(batch["score"], "float32")
        bce = self.objective == "bce"
        predicted = ops.sigmoid(logits) if bce else logits
        error = ops.mean(ops.square(predicted - scores))
        return (soft_cross_entropy(scores, logits) if bce else error), {"score_error": error}

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "objective": self.objective}
