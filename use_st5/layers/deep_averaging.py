"""The layers of a deep averaging network: the mean of a text's n-grams, and dense layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from use_st5.layers.random_normal import RandomNormal


@keras.saving.register_keras_serializable(package="use_st5")
class NGramEmbedding(keras.layers.Layer):
    """Averages the embeddings of the words and bi-grams of each text.

    USE paper, section "Deep Averaging Network": "input embeddings for words and bi-grams are first
    averaged together". Words and bi-grams share one table, as in the published graph. Id 0 is
    padding and is not counted.

    Args:
        num_embeddings: Rows of the table, including the padding row.
        embedding_dim: Width of the table.
        term_dropout: Probability that training leaves an n-gram out of the mean (word dropout,
            Iyyer et al. 2015, section 3).

    Call arguments:
        ids: int32 `[batch, length]`, 0 = padding.
        training: Whether to apply `term_dropout`.

    Returns:
        float32 `[batch, embedding_dim]`; zero for a row that contains only padding.
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        *,
        term_dropout: float = 0.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.term_dropout = term_dropout
        self.seed_generator = keras.random.SeedGenerator() if term_dropout else None

    def build(self, _input_shape: Any = None) -> None:
        self.embeddings = self.add_weight(
            name="embeddings",
            shape=(self.num_embeddings, self.embedding_dim),
            initializer=RandomNormal(stddev=0.05),
        )

    def call(self, ids: Any, training: bool = False) -> Any:
        counted = ids > 0
        if training and self.term_dropout:
            draw = keras.random.uniform(ops.shape(ids), dtype="float32", seed=self.seed_generator)
            counted = ops.logical_and(counted, draw >= self.term_dropout)
        vectors = ops.cast(ops.take(self.embeddings, ids, axis=0), "float32")
        total = ops.sum(ops.where(ops.expand_dims(counted, -1), vectors, 0.0), axis=1)
        count = ops.sum(ops.cast(counted, "float32"), axis=1, keepdims=True)
        return total / ops.maximum(count, 1.0)


LAYERS_PER_BLOCK = 2


@keras.saving.register_keras_serializable(package="use_st5")
class ResidualFeedForward(keras.layers.Layer):
    """Bias-free dense layers in residual blocks of two layers.

    A block computes `f(f(x·W₁)·W₂) + skip(x)`. The skip connection is the identity, or a bias-free
    projection if the block changes the width. This is the architecture of the published USE-DAN
    graph, whose layers have the names `ResidualHidden_0 … ResidualHidden_3` and
    `ResidualHidden_3/AdjustDepth/projection`.

    Args:
        hidden_dims: Width of each dense layer; an even number of layers.
        activation: Keras name of `f`.
        dropout: Dropout rate on the output of each block's nonlinear branch.

    Call arguments:
        x: `[batch, dim]`.
        training: Whether to apply dropout.

    Returns:
        `[batch, hidden_dims[-1]]`.
    """

    def __init__(
        self,
        hidden_dims: Sequence[int],
        *,
        activation: str = "tanh",
        dropout: float = 0.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if not hidden_dims or len(hidden_dims) % LAYERS_PER_BLOCK:
            raise ValueError(f"hidden_dims: expected an even number, received {hidden_dims}.")
        self.hidden_dims = tuple(hidden_dims)
        self.activation = activation
        self.dropout = dropout
        self.dense_layers = [
            self._dense(dim, f"hidden_{i}", activation=activation)
            for i, dim in enumerate(self.hidden_dims)
        ]
        self.projections: dict[str, keras.layers.Dense] = {}
        self.dropout_layer = keras.layers.Dropout(dropout, dtype=self.dtype_policy)

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        width = input_shape[-1]
        for block in range(len(self.hidden_dims) // LAYERS_PER_BLOCK):
            first, second = self._block(block)
            first.build((None, width))
            second.build((None, first.units))
            if width != second.units:
                projection = self._dense(second.units, f"projection_{block}")
                projection.build((None, width))
                self.projections[str(block)] = projection
            width = second.units

    def call(self, x: Any, training: bool = False) -> Any:
        for block in range(len(self.hidden_dims) // LAYERS_PER_BLOCK):
            first, second = self._block(block)
            branch = self.dropout_layer(second(first(x)), training=training)
            projection = self.projections.get(str(block))
            x = branch + (x if projection is None else projection(x))
        return x

    def _dense(self, units: int, name: str, *, activation: str | None = None) -> keras.layers.Dense:
        return keras.layers.Dense(
            units, activation=activation, use_bias=False, dtype=self.dtype_policy, name=name
        )

    def _block(self, block: int) -> list[keras.layers.Dense]:
        return self.dense_layers[block * LAYERS_PER_BLOCK : (block + 1) * LAYERS_PER_BLOCK]
