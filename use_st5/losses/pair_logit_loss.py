"""Scored pairs of texts for a cross-encoder, which reads both texts together."""

from __future__ import annotations

from typing import Any, Literal, get_args

import keras
from keras import ops

from use_st5.losses.scored_pair_loss import soft_cross_entropy
from use_st5.losses.task_loss import Feature, Gather, TaskLoss

Objective = Literal["bce", "mse"]
OBJECTIVES: tuple[Objective, ...] = get_args(Objective)


@keras.saving.register_keras_serializable(package="use_st5")
class PairLogitLoss(TaskLoss):
    """`−mean yᵢ·log σ(xᵢ) + (1 − yᵢ)·log(1 − σ(xᵢ))`, `x` the logit of a pair.

    This is Trans-Encoder's step from the bi-encoder to the cross-encoder (Liu et al. 2022, arXiv
    2109.13059, Eq. 2). The scores come from another model and can have any value between 0 and 1.
    "mse" is `mean (xᵢ − yᵢ)²`; the paper reports that the cross-encoder then copies its labels
    (Table 8).

    Inputs:
        | feature | kind |
        |---|---|
        | pair | ids `[batch, length]` of both texts (`padded_pairs`) |
        | score | floats `[batch]` in 0 … 1 |

    Relations:
        To train a bi-encoder on the same pairs, use `ScoredPairLoss`.

    Examples:
        >>> data = ArrayData({"pair": ids, "score": scores})
        >>> task = Task("pairs", PairLogitLoss(), data)
        >>> task.check_features()

    Args:
        objective: "bce" or "mse".

    Raises:
        ValueError: The objective is unknown.
    """

    features = (Feature("pair", "ids"), Feature("score", "score"))
    metric_names = ("score_error",)

    def __init__(self, *, objective: Objective = "bce", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if objective not in OBJECTIVES:
            raise ValueError(f"objective: expected one of {OBJECTIVES}, received {objective!r}.")
        self.objective = objective

    def build(self, embedding_shape: tuple[int | None, int]) -> None:
        """Checks that the encoder returns one number per pair; the loss has no weights.

        Raises:
            ValueError: It returns a vector.
        """
        if embedding_shape[-1] != 1:
            raise ValueError(
                "PairLogitLoss: expected a cross-encoder, which gives one number for a pair, "
                f"received an encoder of dimension {embedding_shape[-1]}."
            )

    def call(
        self, encoder: keras.Model, batch: dict[str, Any], training: bool, gather: Gather
    ) -> tuple[Any, dict[str, Any]]:
        logits = ops.cast(encoder(batch["pair"], training=training), "float32")[:, 0]
        scores = ops.cast(batch["score"], "float32")
        bce = self.objective == "bce"
        predicted = ops.sigmoid(logits) if bce else logits
        error = ops.mean(ops.square(predicted - scores))
        return (soft_cross_entropy(scores, logits) if bce else error), {"score_error": error}

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "objective": self.objective}
