"""Distillation: train the encoder to produce the vectors of a stronger encoder."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from use_st5.layers.attention import EXCLUDED
from use_st5.layers.pooling import l2_normalize
from use_st5.losses.task_loss import Feature, Gather, VectorLoss


@keras.saving.register_keras_serializable(package="use_st5")
class TeacherLoss(VectorLoss):
    """`w_v·mean(1 − cos(W·sᵢ, tᵢ)) + w_s·mean_{i≠j}(Sᵢⱼ − Tᵢⱼ)² + w_r·mean KL(p(Tᵢ) ‖ p(Sᵢ))`.

    `s` is the encoder's vector and `t` the teacher's. `S` and `T` are the matrices of cosines in
    the batch (with `tf.distribute`, in the batch of all replicas). `p` is the softmax of a row with
    the temperature, without the similarity of a row to itself.

    - The first term is the regression of Reimers and Gurevych 2020, with a bias-free `W` if the
      dimensions differ.
    - The second term is the similarity-preserving loss of Tung and Mori 2019.
    - The third term compares rankings.

    The last two terms use `s` itself, not `W·s`, so they train the cosines of the exported vectors.

    With hints `h`, `w_h·mean(1 − cos(H·sᵢ, hᵢ))` is added. A hint is the output of a middle layer
    of the teacher (Romero et al. 2015, arXiv 1412.6550, section 2.1). It contains information that
    the cosines of the teacher's vectors lack and that a classifier may need.

    Inputs:
        | feature | kind |
        |---|---|
        | sentence | ids `[batch, length]` |
        | teacher | floats `[batch, teacher_dim]` |
        | hint, if `hint_dim` is given | floats `[batch, hint_dim]`, any norm except 0 |

    Relations:
        `use_st5.train(…, teacher=…)` computes a teacher's vectors and trains with this loss. For
        labels instead of a teacher, use `ContrastiveLoss` or `ClassificationLoss`.

    Examples:
        >>> loss = TeacherLoss(teacher_dim=6, similarity_weight=1.0)
        >>> task = Task("teacher", loss, ArrayData({"sentence": ids, "teacher": vectors}))
        >>> task.check_features()

    Args:
        teacher_dim: Width of the teacher's vectors.
        vector_weight: `w_v`.
        similarity_weight: `w_s`.
        ranking_weight: `w_r`.
        temperature: The temperature of the softmax in the third term.
        hint_dim: Width of the hints; None: no hints.
        hint_weight: `w_h`.
    """

    def __init__(
        self,
        *,
        teacher_dim: int,
        vector_weight: float = 1.0,
        similarity_weight: float = 0.0,
        ranking_weight: float = 0.0,
        temperature: float = 0.05,
        hint_dim: int | None = None,
        hint_weight: float = 1.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.teacher_dim = teacher_dim
        self.vector_weight = vector_weight
        self.similarity_weight = similarity_weight
        self.ranking_weight = ranking_weight
        self.temperature = temperature
        self.hint_dim = hint_dim
        self.hint_weight = hint_weight

    @property
    def metric_names(self) -> tuple[str, ...]:
        """Mean cosine with the teacher, mean squared error of the cosines, the hints' cosine."""
        names = ("teacher_cosine", "similarity_error")
        return names if self.hint_dim is None else (*names, "hint_cosine")

    @property
    def features(self) -> tuple[Feature, ...]:
        """The sentence, the teacher's vector and, with `hint_dim`, the hint."""
        features = (Feature("sentence", "ids"), Feature("teacher", "vector", size=self.teacher_dim))
        if self.hint_dim is None:
            return features
        return (*features, Feature("hint", "vector", size=self.hint_dim))

    def build(self, embedding_shape: tuple[int | None, int]) -> None:
        self.projection = self.hint_projection = None
        if embedding_shape[-1] != self.teacher_dim:
            self.projection = _linear(self.teacher_dim, embedding_shape, "projection")
        if self.hint_dim is not None:
            self.hint_projection = _linear(self.hint_dim, embedding_shape, "hint_projection")

    def from_vectors(
        self, vectors: list[Any], batch: dict[str, Any], *, training: bool, gather: Gather
    ) -> tuple[Any, dict[str, Any]]:
        (student,) = vectors
        teacher = l2_normalize(batch["teacher"])
        projected = student if self.projection is None else self.projection(student)
        cosine = _mean_cosine(projected, teacher)
        # Cosines of own rows with all rows, `[rows, all]`, and a mask: False for the row itself.
        student_cosines, teacher_cosines = (
            ops.matmul(x, ops.transpose(gather(x))) for x in (l2_normalize(student), teacher)
        )
        rows = ops.shape(student)[0]
        own = gather.first_row(rows) + ops.arange(rows, dtype="int32")
        mask = ops.arange(ops.shape(student_cosines)[1], dtype="int32")[None, :] != own[:, None]
        squares = ops.where(mask, ops.square(student_cosines - teacher_cosines), 0.0)
        error = ops.sum(squares) / ops.maximum(ops.sum(ops.cast(mask, "float32")), 1.0)
        loss = self.vector_weight * (1.0 - cosine) + self.similarity_weight * error
        if self.ranking_weight:
            loss += self.ranking_weight * self._ranking_divergence(
                student_cosines, teacher_cosines, mask
            )
        metrics = {"teacher_cosine": cosine, "similarity_error": error}
        if self.hint_projection is not None:
            cosine = _mean_cosine(self.hint_projection(student), batch["hint"])
            loss += self.hint_weight * (1.0 - cosine)
            metrics["hint_cosine"] = cosine
        return loss, metrics

    def _ranking_divergence(self, ours: Any, theirs: Any, others: Any) -> Any:
        """Mean over rows of `KL(softmax(theirs / τ) ‖ softmax(ours / τ))` where `others`."""
        log_q, log_p = (
            ops.log_softmax(ops.where(others, cosines / self.temperature, EXCLUDED), axis=-1)
            for cosines in (ours, theirs)
        )
        # Both logarithms are huge at excluded entries, so their difference is not computed there.
        difference = ops.where(others, log_p - log_q, 0.0)
        return ops.mean(ops.sum(ops.exp(log_p) * difference, axis=-1))

    def get_config(self) -> dict[str, Any]:
        # Without hints the config is as before hints existed, so old checkpoints can continue.
        hints = {"hint_dim": self.hint_dim, "hint_weight": self.hint_weight}
        return {
            **super().get_config(),
            **(hints if self.hint_dim is not None else {}),
            "teacher_dim": self.teacher_dim,
            "vector_weight": self.vector_weight,
            "similarity_weight": self.similarity_weight,
            "ranking_weight": self.ranking_weight,
            "temperature": self.temperature,
        }


def _linear(dim: int, input_shape: tuple[int | None, ...], name: str) -> keras.layers.Dense:
    layer = keras.layers.Dense(dim, use_bias=False, dtype="float32", name=name)
    layer.build(input_shape)
    return layer


def _mean_cosine(first: Any, second: Any) -> Any:
    return ops.mean(ops.sum(l2_normalize(first) * l2_normalize(second), axis=-1))
