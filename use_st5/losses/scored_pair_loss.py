"""Scored pairs of texts: train the similarity of their vectors to follow the score."""

from __future__ import annotations

from typing import Any, Literal, get_args

import keras
import numpy as np
from keras import ops

from use_st5.layers.attention import EXCLUDED
from use_st5.layers.l2_normalize import l2_normalize
from use_st5.losses.task_loss import Feature, Gather, VectorLoss

Objective = Literal["mse", "bce", "cosent"]
Similarity = Literal["cosine", "angular"]
OBJECTIVES: tuple[Objective, ...] = get_args(Objective)
SIMILARITIES: tuple[Similarity, ...] = get_args(Similarity)

# At this cosine the angle is 4e-4, and the derivative of arccos is finite.
_NEARLY_ONE = 1.0 - 1e-7


@keras.saving.register_keras_serializable(package="use_st5")
class ScoredPairLoss(VectorLoss):
    """`mean (sim(uᵢ, vᵢ) − yᵢ)²`, or one of two other objectives.

    - "mse": the squared error, as in SBERT's regression (Reimers and Gurevych 2019, section 3) and
      Trans-Encoder's step from the cross-encoder to the bi-encoder (Liu et al. 2022, Eq. 3).
    - "bce": `−mean yᵢ·log σ(simᵢ) + (1 − yᵢ)·log(1 − σ(simᵢ))`, Trans-Encoder's Eq. 2, compared in
      its Table 8.
    - "cosent": `log(1 + Σ_{yᵢ > yⱼ} exp((simⱼ − simᵢ) / τ))` over all pairs of rows of the batch
      (with `tf.distribute`, of all replicas). It uses only the order of the scores (CoSENT, Su
      2022, kexue.fm/archives/8847).

    The similarity is the cosine, or `1 − arccos(cosine) / π` (USE paper, Eq. 1).

    Inputs:
        | feature | kind |
        |---|---|
        | first | ids `[batch, length]` |
        | second | ids `[batch, length]` |
        | score | floats `[batch]`: a similarity for "mse", 0 … 1 for "bce", any for "cosent" |

    Relations:
        For pairs without a score, use `ContrastiveLoss`. To train a cross-encoder on the same
        pairs, use `PairLogitLoss`.

    Examples:
        >>> data = ArrayData({"first": ids, "second": others, "score": scores})
        >>> task = Task("pairs", ScoredPairLoss(objective="cosent"), data)
        >>> task.check_features()

    Args:
        objective: "mse", "bce" or "cosent".
        similarity: "cosine" or "angular".
        temperature: `τ` of "cosent".

    Raises:
        ValueError: The objective or the similarity is unknown, or the temperature is not positive.
    """

    features = (Feature("first", "ids"), Feature("second", "ids"), Feature("score", "score"))
    metric_names = ("similarity_error",)

    def __init__(
        self,
        *,
        objective: Objective = "mse",
        similarity: Similarity = "cosine",
        temperature: float = 0.05,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if objective not in OBJECTIVES:
            raise ValueError(f"objective: expected one of {OBJECTIVES}, received {objective!r}.")
        if similarity not in SIMILARITIES:
            raise ValueError(
                f"similarity: expected one of {SIMILARITIES}, received {similarity!r}."
            )
        if not temperature > 0:
            raise ValueError(f"Expected a temperature above 0. Received: {temperature}")
        self.objective = objective
        self.similarity = similarity
        self.temperature = temperature

    def texts(self, batch: dict[str, Any]) -> list[Any]:
        return [batch["first"], batch["second"]]

    def from_vectors(
        self, vectors: list[Any], batch: dict[str, Any], *, training: bool, gather: Gather
    ) -> tuple[Any, dict[str, Any]]:
        u, v = (l2_normalize(each) for each in vectors)
        similarity = ops.sum(u * v, axis=-1)
        if self.similarity == "angular":
            cosine = ops.clip(similarity, -_NEARLY_ONE, _NEARLY_ONE)
            similarity = 1.0 - ops.arccos(cosine) / np.float32(np.pi)
        scores = ops.cast(batch["score"], "float32")
        error = ops.mean(ops.square(similarity - scores))
        if self.objective == "cosent":
            loss = _disorder(gather(similarity) / self.temperature, gather(scores))
        else:
            loss = error if self.objective == "mse" else soft_cross_entropy(scores, similarity)
        return loss, {"similarity_error": error}

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "objective": self.objective,
            "similarity": self.similarity,
            "temperature": self.temperature,
        }


def soft_cross_entropy(scores: Any, logits: Any) -> Any:
    """The mean of `−y·log σ(x) − (1 − y)·log(1 − σ(x))`, computed as `softplus(x) − x·y`.

    Args:
        scores: float32 `[batch]`; a score from a model may be slightly outside of 0 … 1.
        logits: float32 `[batch]`.
    """
    return ops.mean(ops.softplus(logits) - logits * scores)


def _disorder(similarities: Any, scores: Any) -> Any:
    """`log(1 + Σ exp(sⱼ − sᵢ))` over the pairs of rows with `yᵢ > yⱼ`; 0 without such pairs."""
    differences = similarities[None, :] - similarities[:, None]
    pair_mask = scores[:, None] > scores[None, :]
    exponents = ops.reshape(ops.where(pair_mask, differences, EXCLUDED), (-1,))
    return ops.logsumexp(ops.pad(exponents, [[1, 0]]))
