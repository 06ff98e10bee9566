"""Running text: predict the previous and the next sentence from a sentence."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from use_st5.losses.sentence_decoder import SentenceDecoder
from use_st5.losses.task_loss import Feature, Gather, stack_ids
from use_st5.losses.vector_loss import VectorLoss

_PADDING, _UNKNOWN = 0, 1


@keras.saving.register_keras_serializable(package="use_st5")
class SkipThoughtLoss(VectorLoss):
    """`mean over neighbours of (1/|n|) Σ_t −log p(n_t | n_{<t}, encoder(sentence))`.

    This is the Skip-Thought-like task of the USE paper. A Transformer decoder replaces the LSTM of
    Kiros et al. 2015. One decoder predicts both neighbours, with a trained vector for the
    direction: most weights of a decoder are its token embeddings, which both directions share, and
    one pass over both keeps the compiled step small. All neighbours have the same weight,
    independent of their length. The loss of a missing neighbour (a row of padding) is zero.

    Inputs:
        | feature | kind |
        |---|---|
        | sentence | n-gram ids `[batch, length]` |
        | previous | uni-gram ids `[batch, max_tokens]` |
        | next | uni-gram ids `[batch, max_tokens]` |

    Relations:
        It needs running text, but no pairs and no labels. The decoder is not needed after the
        training.

    Examples:
        >>> data = ArrayData({"sentence": ids, "previous": others, "next": others})
        >>> task = Task("text", SkipThoughtLoss(vocabulary_size=20), data)
        >>> task.check_features()

    Args:
        vocabulary_size: The decoder predicts ids below this number (the most frequent words). All
            other ids count as unknown, id 1.
        hidden_dim: Width of the decoder.
        num_layers: Number of decoder blocks.
        num_heads: Number of attention heads.
        intermediate_dim: Width of the feed-forward networks.
    """

    features = (
        Feature("sentence", "ids"),
        Feature("previous", "token_ids"),
        Feature("next", "token_ids"),
    )
    metric_names = ("accuracy",)

    def __init__(
        self,
        *,
        vocabulary_size: int,
        hidden_dim: int = 256,
        num_layers: int = 1,
        num_heads: int = 4,
        intermediate_dim: int = 1024,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.vocabulary_size = vocabulary_size
        self.sizes = {
            "hidden_dim": hidden_dim,
            "num_layers": num_layers,
            "num_heads": num_heads,
            "intermediate_dim": intermediate_dim,
        }
        self.decoder = SentenceDecoder(
            vocabulary_size=vocabulary_size, dtype="float32", **self.sizes
        )

    def build(self, embedding_shape: tuple[int | None, int]) -> None:
        self.decoder.build(embedding_shape)

    def texts(self, batch: dict[str, Any]) -> list[Any]:
        return [batch["sentence"]]

    def from_vectors(
        self, vectors: list[Any], batch: dict[str, Any], *, training: bool, gather: Gather
    ) -> tuple[Any, dict[str, Any]]:
        (sentences,) = vectors
        targets = stack_ids([batch["previous"], batch["next"]])
        targets = ops.where(targets < self.vocabulary_size, targets, _UNKNOWN)
        directions = ops.repeat(ops.arange(2, dtype="int32"), ops.shape(sentences)[0])
        logits = self.decoder(
            targets, vectors=ops.concatenate([sentences, sentences], axis=0), directions=directions
        )
        token_mask = ops.cast(targets != _PADDING, "float32")
        losses = ops.sparse_categorical_crossentropy(targets, logits, from_logits=True)
        hits = ops.cast(ops.argmax(logits, axis=-1), "int32") == ops.cast(targets, "int32")
        accuracy = _mean_of_row_means(ops.cast(hits, "float32"), token_mask)
        return _mean_of_row_means(losses, token_mask), {"accuracy": accuracy}

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "vocabulary_size": self.vocabulary_size, **self.sizes}


def _mean_of_row_means(values: Any, weights: Any) -> Any:
    """Mean of the rows' weighted means, `[rows, length]` → scalar; an empty row counts as 0."""
    sums = ops.sum(ops.where(weights > 0, values, 0.0) * weights, axis=-1)
    return ops.mean(sums / ops.maximum(ops.sum(weights, axis=-1), 1.0))
