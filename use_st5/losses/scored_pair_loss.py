"""Scored pairs of texts: train the similarity of two vectors, or the number of a cross-encoder."""

from __future__ import annotations

import math
from typing import Any, Literal, get_args

import keras
import numpy as np
from keras import ops

from use_st5.layers.attention import EXCLUDED
from use_st5.layers.pooling import l2_normalize
from use_st5.losses.task_loss import Feature, Gather, TaskLoss, VectorLoss

Objective = Literal["mse", "bce", "cosent", "angle"]
PairObjective = Literal["bce", "mse"]
Similarity = Literal["cosine", "angular"]
OBJECTIVES: tuple[Objective, ...] = get_args(Objective)
PAIR_OBJECTIVES: tuple[PairObjective, ...] = get_args(PairObjective)
SIMILARITIES: tuple[Similarity, ...] = get_args(Similarity)

# At this cosine the angle is 4e-4, and the derivative of arccos is finite.
_NEARLY_ONE = 1.0 - 1e-7


@keras.saving.register_keras_serializable(package="use_st5")
class ScoredPairLoss(VectorLoss):
    """`mean (sim(uᵢ, vᵢ) − yᵢ)²`, or one of three other objectives.

    - "mse": the squared error, as in SBERT's regression (Reimers and Gurevych 2019, section 3) and
      Trans-Encoder's step from the cross-encoder to the bi-encoder (Liu et al. 2022, Eq. 3).
    - "bce": `−mean yᵢ·log σ(simᵢ) + (1 − yᵢ)·log(1 − σ(simᵢ))`, Trans-Encoder's Eq. 2, compared in
      its Table 8.
    - "cosent": `log(1 + Σ_{yᵢ > yⱼ} exp((simⱼ − simᵢ) / τ))` over all pairs of rows of the batch
      (with `tf.distribute`, of all replicas). It uses only the order of the scores (CoSENT, Su
      2022, kexue.fm/archives/8847).
    - "angle": "cosent" with `sim = |Re z + Im z|`, `z` the product of `u` and the conjugate of `v`.
      Their first halves are real parts, their second halves imaginary parts (AnglE, Li and Li 2023,
      arXiv 2309.12871, section 3.4; without the in-batch term, as in sentence-transformers).

    The similarity is the cosine, or `1 − arccos(cosine) / π` (USE paper, Eq. 1).

    Inputs:
        | feature | kind |
        |---|---|
        | first | ids `[batch, length]` |
        | second | ids `[batch, length]` |
        | score | floats `[batch]`: a similarity for "mse", 0 … 1 for "bce", else any |

    Relations:
        For pairs without a score, use `ContrastiveLoss`. To train a cross-encoder on the same
        pairs, use `PairLogitLoss`.

    Examples:
        >>> data = ArrayData({"first": ids, "second": others, "score": scores})
        >>> task = Task("pairs", ScoredPairLoss(objective="cosent"), data)
        >>> task.check_features()

    Args:
        objective: "mse", "bce", "cosent" or "angle".
        similarity: "cosine" or "angular"; "angle" has its own.
        temperature: `τ` of "cosent" and "angle".
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
            raise ValueError(f"similarity: expected one of {SIMILARITIES}, not {similarity!r}.")
        if not temperature > 0:
            raise ValueError(f"temperature: expected more than 0, received {temperature}.")
        self.objective = objective
        self.similarity = similarity
        self.temperature = temperature

    @property
    def least_score(self) -> float:
        """The lowest score that the loss can learn."""
        return 0.0 if self.objective == "bce" or self.similarity == "angular" else -math.inf

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
        if self.objective == "angle":
            even = [[0, 0], [0, vectors[0].shape[-1] % 2]]
            (a, b), (c, d) = (ops.split(ops.pad(each, even), 2, axis=-1) for each in (u, v))
            similarity = ops.abs(ops.sum(a * c + b * d + b * c - a * d, axis=-1))
        if self.objective in ("cosent", "angle"):
            loss = _disorder(gather(similarity) / self.temperature, gather(scores))
        else:
            loss = error if self.objective == "mse" else soft_cross_entropy(scores, similarity)
        return loss, {"similarity_error": error}


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
    """

    features = (Feature("pair", "ids"), Feature("score", "score"))
    metric_names = ("score_error",)

    def __init__(self, *, objective: PairObjective = "bce", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if objective not in PAIR_OBJECTIVES:
            raise ValueError(f"objective: expected one of {PAIR_OBJECTIVES}, not {objective!r}.")
        self.objective = objective

    def build(self, embedding_shape: tuple[int | None, int]) -> None:
        """Checks that the encoder returns one number for a pair; the loss has no weights."""
        if embedding_shape[-1] != 1:
            found = f"one of dimension {embedding_shape[-1]}"
            raise ValueError(f"Expected an encoder with one number for a pair, received {found}.")

    def call(
        self, encoder: keras.Model, batch: dict[str, Any], training: bool, gather: Gather
    ) -> tuple[Any, dict[str, Any]]:
        logits = ops.cast(encoder(batch["pair"], training=training), "float32")[:, 0]
        scores = ops.cast(batch["score"], "float32")
        bce = self.objective == "bce"
        predicted = ops.sigmoid(logits) if bce else logits
        error = ops.mean(ops.square(predicted - scores))
        return (soft_cross_entropy(scores, logits) if bce else error), {"score_error": error}


def soft_cross_entropy(scores: Any, logits: Any) -> Any:
    """The mean of `−y·log σ(x) − (1 − y)·log(1 − σ(x))`; `y` may be a little outside of 0 … 1."""
    return ops.mean(ops.softplus(logits) - logits * scores)


def _disorder(similarities: Any, scores: Any) -> Any:
    """`log(1 + Σ exp(sⱼ − sᵢ))` over the pairs of rows with `yᵢ > yⱼ`; 0 without such pairs."""
    differences = similarities[None, :] - similarities[:, None]
    pair_mask = scores[:, None] > scores[None, :]
    exponents = ops.reshape(ops.where(pair_mask, differences, EXCLUDED), (-1,))
    return ops.logsumexp(ops.pad(exponents, [[1, 0]]))
