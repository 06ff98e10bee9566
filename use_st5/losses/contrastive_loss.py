"""Contrastive loss of Sentence-T5: find the positive of an anchor in the batch."""

from __future__ import annotations

from functools import partial
from typing import Any

from keras import ops
from keras.saving import register_keras_serializable

from use_st5.layers.l2_normalize import l2_normalize
from use_st5.losses.in_batch_softmax import equal_ids, in_batch_softmax
from use_st5.losses.task_loss import Feature, Gather, VectorLoss


@register_keras_serializable(package="use_st5")
class ContrastiveLoss(VectorLoss):
    """`−log softmax((cos(aᵢ, cⱼ) − margin·[j = i]) / τ)[i]`, mean over rows i.

    Sentence-T5, section 3.2. The candidates `c` are all positives of the batch (equation 1), and
    with `hard_negatives` also all negatives of the batch (equation 2). With `tf.distribute`, the
    batch is that of all replicas. `bidirectional` adds the loss of the other direction, like
    t5x_retrieval: find the anchor of a positive among all anchors. The loss is then the sum of both
    directions, not the mean.

    A text is never a negative of itself: rows with equal anchors or equal positives are excluded
    from each other's negatives, and so is a hard negative with the ids of the positive.

    Inputs:
        | feature | kind |
        |---|---|
        | anchor | ids `[batch, length]` |
        | positive | ids `[batch, length]` |
        | negative | ids `[batch, length]`, with `hard_negatives` |
        | negative_2 … | ids `[batch, length]`, with `hard_negatives` of 2 or more |

    Relations:
        Without margin, hard negatives and the second direction, it equals `InputResponseLoss`
        without its network (`scale = 1 / τ`). `MatryoshkaLoss` applies it to several lengths of
        vectors. For large batches, use `gradient_cache`.

    Examples:
        >>> data = ArrayData({"anchor": ids, "positive": others, "negative": ids})
        >>> task = Task("triplets", ContrastiveLoss(hard_negatives=True), data)
        >>> task.check_features()

    Args:
        temperature: `τ`.
        margin: Subtracted from the cosine of the true pair (additive margin, Yang et al. 2019).
        hard_negatives: Whether each row has a hard negative; a number gives how many.
        bidirectional: Whether to add the loss from positives to anchors.

    Raises:
        ValueError: The temperature is not positive, or the number of negatives is below 0.
    """

    metric_names = ("accuracy",)

    def __init__(
        self,
        *,
        temperature: float = 0.01,
        margin: float = 0.0,
        hard_negatives: bool | int = False,
        bidirectional: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if not temperature > 0:
            raise ValueError(f"Expected a temperature above 0. Received: {temperature}")
        if hard_negatives < 0:
            raise ValueError(f"hard_negatives: expected 0 or more, received {hard_negatives}.")
        self.temperature = temperature
        self.margin = margin
        self.hard_negatives = hard_negatives
        self.bidirectional = bidirectional

    @property
    def features(self) -> tuple[Feature, ...]:
        """The anchor, the positive and, with `hard_negatives`, the negatives."""
        names = ("anchor", "positive", *self._negatives)
        return tuple(Feature(name, "ids") for name in names)

    @property
    def _negatives(self) -> list[str]:
        numbers = range(1, int(self.hard_negatives) + 1)
        return ["negative" if n == 1 else f"negative_{n}" for n in numbers]

    def texts(self, batch: dict[str, Any]) -> list[Any]:
        return [batch[feature.name] for feature in self.features]

    def from_vectors(
        self, vectors: list[Any], batch: dict[str, Any], *, training: bool, gather: Gather
    ) -> tuple[Any, dict[str, Any]]:
        anchors, positives, *negatives = (l2_normalize(embeddings) for embeddings in vectors)
        duplicates = ops.logical_or(
            *(equal_ids(batch[name], gather(batch[name])) for name in ("anchor", "positive"))
        )
        softmax = partial(
            in_batch_softmax, scale=1.0 / self.temperature, margin=self.margin, gather=gather
        )
        candidates, duplicate_masks = [gather(positives)], [duplicates]
        for name, embeddings in zip(self._negatives, negatives, strict=True):
            candidates.append(gather(embeddings))
            duplicate_masks.append(equal_ids(batch["positive"], gather(batch[name])))
        loss, metrics = softmax(
            anchors, ops.concatenate(candidates), ops.concatenate(duplicate_masks, axis=1)
        )
        if self.bidirectional:
            loss += softmax(positives, gather(anchors), duplicates)[0]
        return loss, metrics

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "temperature": self.temperature,
            "margin": self.margin,
            "hard_negatives": self.hard_negatives,
            "bidirectional": self.bidirectional,
        }
