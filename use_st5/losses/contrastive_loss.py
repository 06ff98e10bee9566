"""Contrastive loss of Sentence-T5, and the softmax over the rows of a batch."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from keras import ops
from keras.saving import register_keras_serializable

from use_st5.layers.attention import EXCLUDED
from use_st5.layers.pooling import l2_normalize
from use_st5.losses.task_loss import Feature, Gather, VectorLoss, cross_entropy


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
            raise ValueError(f"temperature: expected more than 0, received {temperature}.")
        self.temperature = temperature
        self.margin = margin
        self.hard_negatives = hard_negatives
        self.bidirectional = bidirectional

    @property
    def features(self) -> tuple[Feature, ...]:
        """The anchor, the positive and, with `hard_negatives`, the negatives."""
        names = ("anchor", "positive", *negative_names(int(self.hard_negatives)))
        return tuple(Feature(name, "ids") for name in names)

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
        for name, embeddings in zip(negative_names(len(negatives)), negatives, strict=True):
            candidates.append(gather(embeddings))
            duplicate_masks.append(equal_ids(batch["positive"], gather(batch[name])))
        loss, metrics = softmax(
            anchors, ops.concatenate(candidates), ops.concatenate(duplicate_masks, axis=1)
        )
        if self.bidirectional:
            loss += softmax(positives, gather(anchors), duplicates)[0]
        return loss, metrics


def negative_names(count: int) -> list[str]:
    """The names of the columns of a row's hard negatives."""
    return ["negative" if n == 1 else f"negative_{n}" for n in range(1, count + 1)]


# Factors of positions; a longer row uses them again from the first.
_FACTORS = 8192


def in_batch_softmax(
    queries: Any,
    candidates: Any,
    repeated: Any,
    *,
    scale: float,
    margin: float,
    gather: Gather,
) -> tuple[Any, dict[str, Any]]:
    """`−log softmax_j(scale · (qᵢ·cⱼ − margin·[j = i]))[i]`, mean over the replica's rows i.

    Henderson et al. 2017, section 4; the margin is from Yang et al. 2019.

    `queries` are float32 `[rows, dimension]` of this replica, `candidates` `[all, dimension]`: the
    gathered true ones in order, then others. `repeated`, bool `[rows, all]`, is True for candidates
    that are not used as negatives; `scale` is the inverse of the temperature.
    """
    products = ops.matmul(queries, ops.transpose(candidates))
    labels, true_mask = own_candidates(products, gather)
    logits = scale * (products - margin * ops.cast(true_mask, "float32"))
    logits = ops.where(ops.logical_and(repeated, ops.logical_not(true_mask)), EXCLUDED, logits)
    return cross_entropy(labels, logits)


def own_candidates(products: Any, gather: Gather) -> tuple[Any, Any]:
    """The place of each row's own candidate, int32 `[rows]`, and its mask `[rows, candidates]`."""
    rows, candidates = ops.shape(products)
    labels = gather.first_row(rows) + ops.arange(rows, dtype="int32")
    return labels, ops.arange(candidates, dtype="int32")[None, :] == labels[:, None]


def equal_ids(a: Any, b: Any) -> Any:
    """Whether rows of ids `[n, …]` and `[m, …]` have equal keys: bool `[n, m]`."""
    keys_a, keys_b = (_keys(ids) for ids in (a, b))
    return ops.all(keys_a[:, None] == keys_b[None, :], axis=-1)


def _keys(ids: Any) -> Any:
    """A key for each row, as two int32 numbers (JAX has no int64 by default): `[n, length, 2]`.

    The key of a row is `Σ id · factor` modulo 2^64, with a random odd factor for each position.
    Padding (0) does not change it. Rows that differ in one id have different keys; other rows have
    equal keys with a probability of about 2^−63, unless the same ids are 8192 places apart.
    """
    factors = np.random.default_rng(0).integers(2**64, size=_FACTORS, dtype=np.uint64)
    factors = (factors | np.uint64(1)).astype("<u8").view("<i4").reshape(-1, 2)
    # Batches have several widths, so the width may be unknown when the graph is built.
    places = ops.arange(ops.shape(ids)[1], dtype="int32") % _FACTORS
    return ops.sum(ops.cast(ids, "int32")[:, :, None] * ops.take(factors, places, axis=0), axis=1)
