"""Contrastive loss whose false negatives a guide model masks: GISTEmbed."""

from __future__ import annotations

from typing import Any, Literal

from keras import ops
from keras.saving import register_keras_serializable

from use_st5.layers.attention import EXCLUDED
from use_st5.layers.pooling import l2_normalize
from use_st5.losses.contrastive_loss import equal_ids, negative_names, own_candidates
from use_st5.losses.task_loss import Feature, Gather, VectorLoss, cross_entropy


@register_keras_serializable(package="use_st5")
class GISTEmbedLoss(VectorLoss):
    """`−log softmax([cos(aᵢ, pⱼ), cos(aᵢ, aⱼ), cos(pᵢ, pⱼ), cos(aᵢ, nⱼ)] / τ)[i]`, mean over i.

    Solatorio 2024 (GISTEmbed, arXiv 2402.16829, section 3). A candidate is left out if a guide
    model gives it a higher cosine with the text that it is compared with than the guide gives
    anchor and positive, less the margin: it may be an answer that nobody labelled. The value is
    that of `GISTEmbedLoss` of sentence-transformers, except that a text is never a negative of
    itself: rows with equal anchors or equal positives leave each other out.

    Inputs:
        | feature | kind |
        |---|---|
        | anchor | ids `[batch, length]` |
        | positive | ids `[batch, length]` |
        | negative, negative_2 … | ids `[batch, length]`, with `hard_negatives` |
        | guide_anchor | floats `[batch, guide_dim]` |
        | guide_positive | floats `[batch, guide_dim]` |
        | guide_negative … | floats `[batch, guide_dim]`, with `hard_negatives` |

    Relations:
        `use_st5.train(…, guide=…)` computes the guide's vectors and trains with this loss. Without
        a guide, use `ContrastiveLoss`.

    Examples:
        >>> data = ArrayData(
        ...     {"anchor": ids, "positive": others}
        ...     | {"guide_anchor": vectors, "guide_positive": vectors}
        ... )
        >>> task = Task("pairs", GISTEmbedLoss(guide_dim=6), data)
        >>> task.check_features()

    Args:
        guide_dim: Width of the guide's vectors.
        temperature: `τ`.
        margin: How far a negative's cosine under the guide lies below the positive's at least.
        margin_strategy: "absolute", or "relative" to the positive's cosine.
        hard_negatives: Whether each row has a hard negative; a number gives how many.
    """

    metric_names = ("accuracy",)

    def __init__(
        self,
        *,
        guide_dim: int,
        temperature: float = 0.01,
        margin: float = 0.0,
        margin_strategy: Literal["absolute", "relative"] = "absolute",
        hard_negatives: bool | int = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.guide_dim = guide_dim
        self.temperature = temperature
        self.margin = margin
        self.margin_strategy = margin_strategy
        self.hard_negatives = hard_negatives

    @property
    def _columns(self) -> tuple[str, ...]:
        return ("anchor", "positive", *negative_names(int(self.hard_negatives)))

    @property
    def features(self) -> tuple[Feature, ...]:
        """The texts, and the guide's vector of each."""
        vectors = (Feature(f"guide_{name}", "vector", self.guide_dim) for name in self._columns)
        return (*(Feature(name, "ids") for name in self._columns), *vectors)

    def from_vectors(
        self, vectors: list[Any], batch: dict[str, Any], *, training: bool, gather: Gather
    ) -> tuple[Any, dict[str, Any]]:
        ours = dict(zip(self._columns, map(l2_normalize, vectors), strict=True))
        guides = {name: l2_normalize(batch[f"guide_{name}"]) for name in self._columns}
        all_ours, all_guides = ({n: gather(v) for n, v in x.items()} for x in (ours, guides))
        positive = ops.sum(guides["anchor"] * guides["positive"], axis=-1, keepdims=True)
        scale = ops.abs(positive) if self.margin_strategy == "relative" else 1.0
        limit = positive - self.margin * scale
        repeated = ops.logical_or(
            *(equal_ids(batch[name], gather(batch[name])) for name in ("anchor", "positive"))
        )
        labels, own = own_candidates(repeated, gather)
        pairs = [("anchor", "positive"), ("anchor", "anchor"), ("positive", "positive")]
        pairs += [("anchor", name) for name in self._columns[2:]]
        logits = []
        for first, second in pairs:
            cosines = ops.matmul(ours[first], ops.transpose(all_ours[second]))
            guided = ops.matmul(guides[first], ops.transpose(all_guides[second]))
            same = repeated
            if second in self._columns[2:]:
                same = equal_ids(batch["positive"], gather(batch[second]))
            excluded = ops.logical_or(guided > limit, same)
            if (first, second) == ("anchor", "positive"):
                excluded &= ops.logical_not(own)
            logits.append(ops.where(excluded, EXCLUDED, cosines / self.temperature))
        return cross_entropy(labels, ops.concatenate(logits, axis=1))
