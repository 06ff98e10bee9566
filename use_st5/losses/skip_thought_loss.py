"""Running text: predict the previous and the next sentence from a sentence."""

from __future__ import annotations

import math
from typing import Any

import keras
import numpy as np
from keras import ops

from use_st5.losses.task_loss import Feature, Gather, VectorLoss, stack_ids

# Kinds of decoded sentences: the one before and the one after.
_DIRECTIONS = 2


class SentenceDecoder(keras.layers.Layer):
    """Predicts the tokens of a sentence from one vector.

    Pre-norm blocks of causal self-attention, conditioning and a feed-forward network, over token
    embeddings with sinusoidal positions (Vaswani et al. 2017). The output layer shares the token
    embeddings. The conditioning is cross-attention over a single vector. Its softmax is always 1,
    so it is computed as a linear map of that vector, added at every position.

    Targets are padded at the end, so the causal mask also hides padding from real tokens. If it is
    `tied`, the caller gives the token embeddings, `table`.
    """

    def __init__(
        self,
        *,
        vocabulary_size: int,
        hidden_dim: int,
        num_layers: int,
        num_heads: int,
        intermediate_dim: int,
        tied: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.vocabulary_size = vocabulary_size
        self.hidden_dim = hidden_dim
        self.tied = tied
        self.blocks = [
            _Block(hidden_dim, num_heads, intermediate_dim, dtype=self.dtype_policy)
            for _ in range(num_layers)
        ]
        self.norm = keras.layers.LayerNormalization(dtype=self.dtype_policy)

    def build(self, vectors_shape: tuple[int | None, int]) -> None:
        stddev = 1.0 / math.sqrt(self.hidden_dim)
        initializer = keras.initializers.RandomNormal(mean=0.0, stddev=stddev)
        if not self.tied:
            shape = (self.vocabulary_size, self.hidden_dim)
            self.tokens = self.add_weight(name="tokens", shape=shape, initializer=initializer)
        self.directions = self.add_weight(
            name="directions", shape=(_DIRECTIONS, self.hidden_dim), initializer=initializer
        )
        self.bias = self.add_weight(name="bias", shape=(self.vocabulary_size,), initializer="zeros")
        for block in self.blocks:
            block.build(vectors_shape)
        self.norm.build((None, None, self.hidden_dim))

    def __call__(self, tokens: Any, *, vectors: Any, directions: Any, table: Any = None) -> Any:
        """Builds for the vectors' width in the first call, then runs `call` (see the class)."""
        if not self.built:
            self.build(tuple(vectors.shape))
        return super().__call__(tokens, vectors=vectors, directions=directions, table=table)

    def call(self, tokens: Any, vectors: Any, directions: Any, table: Any = None) -> Any:
        table = table if self.tied else self.tokens
        # Scaled so that token and position weigh alike (Vaswani et al. 2017, section 3.4).
        x = ops.take(table, tokens[:, :-1], axis=0) * math.sqrt(self.hidden_dim)
        x = ops.pad(x, [[0, 0], [1, 0], [0, 0]])
        x = x + _sinusoids(ops.shape(tokens)[1], self.hidden_dim)[None]
        x = x + ops.take(self.directions, directions, axis=0)[:, None, :]
        for block in self.blocks:
            x = block(x, vectors=vectors)
        return ops.matmul(self.norm(x), ops.transpose(table)) + self.bias


class _Block(keras.layers.Layer):
    """`x + attention(norm(x))`, `+ W·vector`, `+ feed_forward(norm(x))`."""

    def __init__(self, width: int, num_heads: int, intermediate_dim: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        options = {"dtype": self.dtype_policy}
        self.width = width
        self.attention_norm = keras.layers.LayerNormalization(**options)
        self.attention = keras.layers.MultiHeadAttention(num_heads, width // num_heads, **options)
        self.condition = keras.layers.Dense(width, **options)
        self.feed_forward_norm = keras.layers.LayerNormalization(**options)
        self.expand = keras.layers.Dense(intermediate_dim, activation="gelu", **options)
        self.contract = keras.layers.Dense(width, **options)

    def build(self, vectors_shape: tuple[int | None, int]) -> None:
        shape = (None, None, self.width)
        self.attention_norm.build(shape)
        self.attention.build(shape, shape)
        self.condition.build(vectors_shape)
        self.feed_forward_norm.build(shape)
        self.expand.build(shape)
        self.contract.build((None, None, self.expand.units))

    def call(self, x: Any, vectors: Any) -> Any:
        normal = self.attention_norm(x)
        x = x + self.attention(normal, normal, use_causal_mask=True)
        x = x + self.condition(vectors)[:, None, :]
        return x + self.contract(self.expand(self.feed_forward_norm(x)))


def _sinusoids(length: Any, width: int) -> Any:
    """Sinusoidal positions, float32 `[length, width]` (Vaswani et al. 2017, 3.5)."""
    rates = (10_000.0 ** (-np.arange(0, width, 2) / width)).astype(np.float32)
    angles = ops.arange(length, dtype="float32")[:, None] * rates[None, :]
    return ops.concatenate([ops.sin(angles), ops.cos(angles)], axis=-1)


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
        self.sizes: dict[str, Any] = {
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
        return token_loss(targets, logits)


def token_loss(targets: Any, logits: Any) -> tuple[Any, dict[str, Any]]:
    """Cross-entropy and accuracy of ids `[rows, length]`, 0 = padding: means of the rows' means."""
    token_mask = ops.cast(targets != _PADDING, "float32")
    losses = ops.sparse_categorical_crossentropy(targets, logits, from_logits=True)
    hits = ops.cast(ops.argmax(logits, axis=-1), "int32") == ops.cast(targets, "int32")
    accuracy = _mean_of_row_means(ops.cast(hits, "float32"), token_mask)
    return _mean_of_row_means(losses, token_mask), {"accuracy": accuracy}


def _mean_of_row_means(values: Any, weights: Any) -> Any:
    """Mean of the rows' weighted means, `[rows, length]` → scalar; an empty row counts as 0."""
    sums = ops.sum(ops.where(weights > 0, values, 0.0) * weights, axis=-1)
    return ops.mean(sums / ops.maximum(ops.sum(weights, axis=-1), 1.0))
