"""Running text as a task: from a sentence, predict its neighbours."""

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

    The Skip-Thought-like task of the USE paper, a Transformer decoder in place of the LSTM of Kiros
    et al. 2015. One decoder serves both neighbours, told apart by a learned direction vector: most
    of a decoder's weights are its token embeddings, which the two would share anyway, and a single
    pass over both keeps the compiled step small. Each neighbour weighs the same whatever its
    length; a row without a neighbour (padding alone) adds zero.

    Inputs:
        | feature | kind |
        |---|---|
        | sentence | n-gram ids `[batch, length]` |
        | previous | uni-gram ids `[batch, max_tokens]` |
        | next | uni-gram ids `[batch, max_tokens]` |

    Relations:
        The one loss here that needs running text alone, no pairs and no labels. Its decoder is
        thrown away after the training.

    Example:
        >>> data = ArrayData({"sentence": ids, "previous": others, "next": others})
        >>> task = Task("text", SkipThoughtLoss(vocabulary_size=20), data)
        >>> task.check_features()

    Args:
        vocabulary_size: The decoder predicts the ids below this one (the most frequent words);
            every other id counts as unknown, id 1.
        hidden_dim: Width of the decoder.
        num_layers: Its blocks.
        num_heads: Its attention heads.
        intermediate_dim: Width of its feed-forward networks.
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
            vocabulary_size=vocabulary_size, num_directions=2, dtype="float32", **self.sizes
        )

    def build(self, embedding_shape: tuple[int | None, int]) -> None:
        self.decoder.build(embedding_shape)

    def texts(self, batch: dict[str, Any]) -> list[Any]:
        return [batch["sentence"]]

    def from_vectors(
        self, vectors: list[Any], batch: dict[str, Any], *, training: bool, gather: Gather
    ) -> tuple[Any, dict[str, Any]]:
        del training, gather  # The head has no dropout; rows do not meet here.
        (sentences,) = vectors
        targets = stack_ids([batch["previous"], batch["next"]])
        targets = ops.where(targets < self.vocabulary_size, targets, _UNKNOWN)
        directions = ops.repeat(ops.arange(2, dtype="int32"), ops.shape(sentences)[0])
        logits = self.decoder(
            targets, vectors=ops.concatenate([sentences, sentences], axis=0), directions=directions
        )
        counted = ops.cast(targets != _PADDING, "float32")
        losses = ops.sparse_categorical_crossentropy(targets, logits, from_logits=True)
        right = ops.cast(ops.argmax(logits, axis=-1), "int32") == ops.cast(targets, "int32")
        accuracy = _mean_of_row_means(ops.cast(right, "float32"), counted)
        return _mean_of_row_means(losses, counted), {"accuracy": accuracy}

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "vocabulary_size": self.vocabulary_size, **self.sizes}


def _mean_of_row_means(values: Any, weights: Any) -> Any:
    """Mean over rows of each row's weighted mean, `[rows, length]` → scalar; an empty row is 0."""
    sums = ops.sum(ops.where(weights > 0, values, 0.0) * weights, axis=-1)
    return ops.mean(sums / ops.maximum(ops.sum(weights, axis=-1), 1.0))
