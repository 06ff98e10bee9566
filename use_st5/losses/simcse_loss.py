"""Unlabelled texts: two views of the same text, which differ by dropout, are a positive pair."""

from __future__ import annotations

from functools import partial
from typing import Any

import keras
from keras import ops

from use_st5.layers.pooling import l2_normalize
from use_st5.losses.contrastive_loss import equal_ids, in_batch_softmax
from use_st5.losses.task_loss import Feature, Gather, VectorLoss


@keras.saving.register_keras_serializable(package="use_st5")
class SimCSELoss(VectorLoss):
    """`−log softmax(cos(f(xᵢ), f(x̄ⱼ)) / τ)[i]`, mean over rows i.

    Unsupervised SimCSE (Gao et al. 2021, arXiv 2104.08821, Eq. 4), the first stage of Trans-Encoder
    (Eq. 1). The encoder reads every text twice, and dropout makes the two vectors different. Equal
    texts in a batch are not negatives.

    Mirror-BERT (Liu et al. 2021, arXiv 2104.08027, section 2) has two differences:

    - SimCSE compares the first views with the second views. With `all_views`, each view is compared
      with the other view of its text and with both views of all other texts: `2·batch` rows with
      `2·batch − 1` candidates each.
    - With a `masked_span`, that many successive tokens are masked in the second view.

    Inputs:
        | feature | kind |
        |---|---|
        | sentence | ids `[batch, length]` |

    Relations:
        For known pairs, use `ContrastiveLoss`, which has the same softmax. Use an encoder with
        dropout, or a `masked_span`: without both, the loss only increases the distances between the
        vectors.

    Examples:
        >>> loss = SimCSELoss(masked_span=2, mask_id=3)
        >>> task = Task("corpus", loss, ArrayData({"sentence": ids}))
        >>> task.check_features()

    Args:
        temperature: `τ`; 0.05 in SimCSE, 0.04 in Mirror-BERT.
        all_views: Whether to compare both views of all texts, as in Mirror-BERT.
        masked_span: Number of successive tokens to mask in the second view; 0: none. Texts that are
            not longer than this are not masked.
        mask_id: The id of the mask token.
        seed: Seed of the random positions.
    """

    features = (Feature("sentence", "ids"),)
    metric_names = ("accuracy",)

    def __init__(
        self,
        *,
        temperature: float = 0.05,
        all_views: bool = False,
        masked_span: int = 0,
        mask_id: int | None = None,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if not temperature > 0:
            raise ValueError(f"temperature: expected more than 0, received {temperature}.")
        if masked_span and mask_id is None:
            raise ValueError("Expected the mask_id that a masked span is replaced by.")
        self.temperature = temperature
        self.all_views = all_views
        self.masked_span = masked_span
        self.mask_id = mask_id
        self.seed = seed
        self.places = keras.random.SeedGenerator(seed) if masked_span else None

    def texts(self, batch: dict[str, Any]) -> list[Any]:
        ids = batch["sentence"]
        return [ids, self._masked(ids) if self.masked_span else ids]

    def from_vectors(
        self, vectors: list[Any], batch: dict[str, Any], *, training: bool, gather: Gather
    ) -> tuple[Any, dict[str, Any]]:
        first_views, second_views = (l2_normalize(each) for each in vectors)
        duplicates = equal_ids(batch["sentence"], gather(batch["sentence"]))
        softmax = partial(in_batch_softmax, scale=1.0 / self.temperature, margin=0.0, gather=gather)
        all_second = gather(second_views)
        if not self.all_views:
            return softmax(first_views, all_second, duplicates)
        # `duplicates` excludes a view from its own candidates.
        all_first = gather(first_views)
        duplicates = ops.concatenate([duplicates, duplicates], axis=1)
        loss, metrics = softmax(first_views, ops.concatenate([all_second, all_first]), duplicates)
        back_loss, back_metrics = softmax(
            second_views, ops.concatenate([all_first, all_second]), duplicates
        )
        return (loss + back_loss) / 2, {
            name: (metrics[name] + back_metrics[name]) / 2 for name in metrics
        }

    def _masked(self, ids: Any) -> Any:
        """Masks a span at a random position; the special tokens at both ends stay."""
        lengths = ops.sum(ops.cast(ids != 0, "int32"), axis=1, keepdims=True)
        room = ops.maximum(lengths - 2 - self.masked_span, 0)
        draws = keras.random.uniform(ops.shape(lengths), dtype="float32", seed=self.places)
        start = 1 + ops.cast(draws * ops.cast(room + 1, "float32"), "int32")
        positions = ops.arange(ops.shape(ids)[1], dtype="int32")[None, :]
        span_mask = (positions >= start) & (positions < start + self.masked_span)
        long_enough = lengths - 2 > self.masked_span
        return ops.where(span_mask & long_enough, ops.cast(self.mask_id, ids.dtype), ids)
