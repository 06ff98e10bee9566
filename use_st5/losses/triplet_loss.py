"""Triplets: a text is nearer to its positive than to a negative, by a margin."""

from __future__ import annotations

from typing import Any, Literal, get_args

from keras import ops
from keras.saving import register_keras_serializable

from use_st5.layers.pooling import l2_normalize
from use_st5.losses.contrastive_loss import equal_ids, negative_names
from use_st5.losses.task_loss import Feature, Gather, VectorLoss

Distance = Literal["cosine", "euclidean"]
Mining = Literal["hard", "semi_hard", "all"]
# More than any distance.
_FAR = 1e9


@register_keras_serializable(package="use_st5")
class TripletLoss(VectorLoss):
    """`max(0, d(aᵢ, pᵢ) − d(aᵢ, nᵢ) + margin)`, mean over rows i and their negatives.

    Schroff et al. 2015 (FaceNet, arXiv 1503.03832, Eq. 2); SBERT's triplet objective (Reimers and
    Gurevych 2019, section 3) has the Euclidean distance and the margin 1. The distance is
    `1 − cos(u, v)` or `‖u − v‖`. A negative with the ids of the positive costs nothing.

    Inputs:
        | feature | kind |
        |---|---|
        | anchor | ids `[batch, length]` |
        | positive | ids `[batch, length]` |
        | negative, negative_2 … | ids `[batch, length]` |

    Relations:
        `ContrastiveLoss` also compares a text with the rest of the batch, and is usually better.
        `BatchTripletLoss` finds the triplets in a batch of texts with labels.

    Examples:
        >>> data = ArrayData({"anchor": ids, "positive": others, "negative": ids})
        >>> task = Task("triplets", TripletLoss(margin=0.2), data)
        >>> task.check_features()

    Args:
        distance: "cosine" or "euclidean".
        margin: How much farther than the positive a negative should be.
        hard_negatives: The number of negatives of a row.
    """

    metric_names = ("accuracy",)

    def __init__(
        self,
        *,
        distance: Distance = "cosine",
        margin: float = 0.3,
        hard_negatives: int = 1,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if distance not in get_args(Distance):
            raise ValueError(f"distance: expected {get_args(Distance)}, received {distance!r}.")
        self.distance = distance
        self.margin = margin
        self.hard_negatives = hard_negatives

    @property
    def features(self) -> tuple[Feature, ...]:
        """The anchor, the positive and the negatives."""
        names = ("anchor", "positive", *negative_names(max(1, self.hard_negatives)))
        return tuple(Feature(name, "ids") for name in names)

    def from_vectors(
        self, vectors: list[Any], batch: dict[str, Any], *, training: bool, gather: Gather
    ) -> tuple[Any, dict[str, Any]]:
        euclidean = self.distance == "euclidean"
        anchors, *others = vectors if euclidean else map(l2_normalize, vectors)
        squares = ops.stack([ops.sum(ops.square(anchors - other), axis=-1) for other in others])
        distances = _root(squares) if euclidean else squares / 2
        true, false = distances[:1], distances[1:]
        anchor, positive, *negatives = self.texts(batch)
        repeated = ops.stack(
            [ops.diagonal(equal_ids(anchor, n) | equal_ids(positive, n)) for n in negatives]
        )
        losses = ops.where(repeated, 0.0, ops.relu(true - false + self.margin))
        return ops.mean(losses), {"accuracy": ops.mean(ops.cast(true < false, "float32"))}


@register_keras_serializable(package="use_st5")
class BatchTripletLoss(VectorLoss):
    """`max(0, d(a, p) − d(a, n) + margin)` over triplets of a batch of texts with labels.

    A positive has the label of the anchor, a negative another one. `mining` chooses the triplets:

    - "hard": for each anchor the farthest positive and the nearest negative, mean over the anchors
      (batch-hard, Hermans et al. 2017, arXiv 1703.07737, Eq. 5).
    - "semi_hard": for each anchor and positive the nearest negative beyond the positive, or the
      farthest negative if there is none; mean over the pairs (FaceNet, section 3.2).
    - "all": all triplets, mean over those that cost something (batch-all, Hermans et al., Eq. 6).

    The last two need memory for the cube of the batch. With `tf.distribute`, the batch is that of
    all replicas. An anchor without a positive or without a negative in the batch costs nothing. A
    text is neither a positive nor a negative of itself, also if the batch has it twice.

    Inputs:
        | feature | kind |
        |---|---|
        | text | ids `[batch, length]` |
        | label | integers `[batch]` |

    Relations:
        `LabelLoss` trains a classifier on the same rows. Here the batches must be large enough to
        hold several texts of a label.

    Examples:
        >>> data = ArrayData({"text": ids, "label": labels})
        >>> task = Task("topics", BatchTripletLoss(mining="semi_hard"), data)
        >>> task.check_features()

    Args:
        mining: "hard", "semi_hard" or "all".
        distance: "cosine" or "euclidean", as in `TripletLoss`.
        margin: How much farther than the positive a negative should be; None: the soft margin
            `log(1 + exp(d(a, p) − d(a, n)))` of Hermans et al.
    """

    features = (Feature("text", "ids"), Feature("label", "label"))
    metric_names = ("accuracy",)

    def __init__(
        self,
        *,
        mining: Mining = "hard",
        distance: Distance = "cosine",
        margin: float | None = 0.3,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if mining not in get_args(Mining):
            raise ValueError(f"mining: expected one of {get_args(Mining)}, received {mining!r}.")
        if distance not in get_args(Distance):
            raise ValueError(f"distance: expected {get_args(Distance)}, received {distance!r}.")
        self.mining = mining
        self.distance = distance
        self.margin = margin

    def from_vectors(
        self, vectors: list[Any], batch: dict[str, Any], *, training: bool, gather: Gather
    ) -> tuple[Any, dict[str, Any]]:
        (anchors,) = vectors if self.distance == "euclidean" else map(l2_normalize, vectors)
        candidates = gather(anchors)
        products = ops.matmul(anchors, ops.transpose(candidates))
        if self.distance == "euclidean":
            own, squares = (ops.sum(ops.square(rows), axis=-1) for rows in (anchors, candidates))
            distances = _root(ops.relu(own[:, None] + squares[None, :] - 2 * products))
        else:
            distances = 1.0 - products
        same = batch["label"][:, None] == gather(batch["label"])[None, :]
        repeated = equal_ids(batch["text"], gather(batch["text"]))
        positives, negatives = same & ~repeated, ~same & ~repeated
        near = ops.min(ops.where(positives, distances, _FAR), axis=1, keepdims=True)
        false = ops.min(ops.where(negatives, distances, _FAR), axis=1, keepdims=True)
        accuracy = ops.mean(ops.cast(near < false, "float32"))
        true, valid = distances, positives & (false < _FAR)
        if self.mining == "hard":
            true = ops.max(ops.where(positives, distances, -_FAR), axis=1, keepdims=True)
            valid = ops.any(valid, axis=1, keepdims=True)
        elif self.mining == "semi_hard":
            farthest = ops.max(ops.where(negatives, distances, -_FAR), axis=1, keepdims=True)
            beyond = negatives[:, None, :] & (distances[:, None, :] > distances[:, :, None])
            false = ops.min(ops.where(beyond, distances[:, None, :], _FAR), axis=2)
            false = ops.where(false < _FAR, false, farthest)
        else:
            true, false = distances[:, :, None], distances[:, None, :]
            valid = positives[:, :, None] & negatives[:, None, :]
        excess = ops.where(valid, true - false, -_FAR)
        soft = self.margin is None
        losses = ops.softplus(excess) if soft else ops.relu(excess + self.margin)
        counted = losses > 0 if self.mining == "all" else valid
        # A mean over the rows of this replica, divided by one over the rows of all.
        sums, counts = (
            ops.sum(ops.reshape(ops.cast(each, "float32"), (ops.shape(each)[0], -1)), axis=1)
            for each in (losses, counted)
        )
        return ops.mean(sums) / ops.maximum(ops.mean(gather(counts)), 1e-9), {"accuracy": accuracy}


def _root(squares: Any) -> Any:
    """The square root, whose gradient at 0 is 0."""
    above = squares > 0
    return ops.where(above, ops.sqrt(ops.where(above, squares, 1.0)), 0.0)
