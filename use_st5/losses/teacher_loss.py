"""Learning from a teacher: come to the vectors that a stronger encoder gives."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from use_st5.layers.l2_normalize import l2_normalize
from use_st5.losses.feature import Feature
from use_st5.losses.gather import Gather
from use_st5.losses.task_loss import EXCLUDED
from use_st5.losses.vector_loss import VectorLoss


@keras.saving.register_keras_serializable(package="use_st5")
class TeacherLoss(VectorLoss):
    """`w_v·mean(1 − cos(W·sᵢ, tᵢ)) + w_s·mean_{i≠j}(Sᵢⱼ − Tᵢⱼ)² + w_r·mean KL(p(Tᵢ) ‖ p(Sᵢ))`.

    `s` is the encoder's vector, `t` the teacher's, `S` and `T` the matrices of cosines within the
    batch (under `tf.distribute` within the batch of all replicas), `p` the softmax of a row at the
    temperature, a row's similarity to itself left out. The first term is the regression of
    Reimers and Gurevych 2020 with a bias-free `W` where the dimensions differ; the second is the
    similarity-preserving term of Tung and Mori 2019; the third compares rankings. The last two act
    on `s` itself, so that the cosines of the exported vectors, not of `W·s`, are the trained ones.

    Inputs:
        | feature | kind |
        |---|---|
        | sentence | ids `[batch, length]` |
        | teacher | floats `[batch, teacher_dim]` |

    Args:
        teacher_dim: Width of the teacher's vectors.
        vector_weight: `w_v`.
        similarity_weight: `w_s`.
        ranking_weight: `w_r`.
        temperature: Of the softmax in the third term.
    """

    metric_names = ("teacher_cosine", "similarity_error")

    def __init__(
        self,
        *,
        teacher_dim: int,
        vector_weight: float = 1.0,
        similarity_weight: float = 0.0,
        ranking_weight: float = 0.0,
        temperature: float = 0.05,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.teacher_dim = teacher_dim
        self.vector_weight = vector_weight
        self.similarity_weight = similarity_weight
        self.ranking_weight = ranking_weight
        self.temperature = temperature

    @property
    def features(self) -> tuple[Feature, ...]:
        """The sentence and the teacher's vector for it."""
        return (Feature("sentence", "ids"), Feature("teacher", "vector", size=self.teacher_dim))

    def build(self, embedding_shape: tuple[int | None, int]) -> None:
        self.projection = None
        if embedding_shape[-1] != self.teacher_dim:
            self.projection = keras.layers.Dense(
                self.teacher_dim, use_bias=False, dtype="float32", name="projection"
            )
            self.projection.build(embedding_shape)

    def texts(self, batch: dict[str, Any]) -> list[Any]:
        return [batch["sentence"]]

    def from_vectors(
        self, vectors: list[Any], batch: dict[str, Any], *, training: bool, gather: Gather
    ) -> tuple[Any, dict[str, Any]]:
        del training  # The head has no dropout.
        (student,) = vectors
        teacher = l2_normalize(batch["teacher"])
        projected = student if self.projection is None else self.projection(student)
        cosine = ops.mean(ops.sum(l2_normalize(projected) * teacher, axis=-1))
        ours, theirs, others = _cosine_matrices(l2_normalize(student), teacher, gather)
        error = _mean_where(ops.square(ours - theirs), others)
        loss = self.vector_weight * (1.0 - cosine) + self.similarity_weight * error
        if self.ranking_weight:
            loss += self.ranking_weight * self._ranking_divergence(ours, theirs, others)
        return loss, {"teacher_cosine": cosine, "similarity_error": error}

    def _ranking_divergence(self, ours: Any, theirs: Any, others: Any) -> Any:
        """Mean over rows of `KL(softmax(theirs / τ) ‖ softmax(ours / τ))` where `others`."""
        log_q, log_p = (
            ops.log_softmax(ops.where(others, cosines / self.temperature, EXCLUDED), axis=-1)
            for cosines in (ours, theirs)
        )
        # At an excluded entry both logarithms are huge: their difference must not be formed.
        difference = ops.where(others, log_p - log_q, 0.0)
        return ops.mean(ops.sum(ops.exp(log_p) * difference, axis=-1))

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "teacher_dim": self.teacher_dim,
            "vector_weight": self.vector_weight,
            "similarity_weight": self.similarity_weight,
            "ranking_weight": self.ranking_weight,
            "temperature": self.temperature,
        }


def _cosine_matrices(student: Any, teacher: Any, gather: Gather) -> tuple[Any, Any, Any]:
    """Cosines of own rows with all rows, `[rows, all]` each, and where the two rows differ."""
    ours, theirs = (ops.matmul(x, ops.transpose(gather(x))) for x in (student, teacher))
    rows = ops.shape(student)[0]
    own = gather.first_row(rows) + ops.arange(rows, dtype="int32")
    others = ops.arange(ops.shape(ours)[1], dtype="int32")[None, :] != own[:, None]
    return ours, theirs, others


def _mean_where(values: Any, mask: Any) -> Any:
    """Mean of the entries of `values` where `mask`; 0 where there is none."""
    total = ops.sum(ops.where(mask, values, 0.0))
    return total / ops.maximum(ops.sum(ops.cast(mask, "float32")), 1.0)
