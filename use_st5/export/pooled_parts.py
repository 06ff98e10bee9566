"""The lean graph of encoders that average embeddings and end in a network (USE-DAN)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar

import keras
import tensorflow as tf

from use_st5.export.embedding_table import EmbeddingTable
from use_st5.export.table_parts import TableParts
from use_st5.models.use_dan import USEDAN


@dataclasses.dataclass(frozen=True, kw_only=True)
class PooledParts(TableParts):
    """The pieces of a deep averaging network, whose texts are never padded.

    Attributes:
        flat: string `[batch]` → (ids int32 `[terms]`, rows int32 `[terms]`, sorted).
        term_weights: ids int32 `[terms]`, training → float32 `[terms]`: 0 for padding and for
            terms dropped in training, else 1.
        network: float32 `[batch, embedding_dim]`, training → float32 `[batch, dimension]`.
    """

    flat: Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]]
    term_weights: Callable[[tf.Tensor, bool], tf.Tensor]

    PIECES: ClassVar[tuple[str, ...]] = ("flat", "term_weights", "network")

    def piece_inputs(self) -> dict[str, list[tf.TensorSpec]]:
        """What the three pieces take."""
        return {
            "flat": [tf.TensorSpec([None], tf.string, name="text")],
            "term_weights": [tf.TensorSpec([None], tf.int32, name="ids")],
            "network": [tf.TensorSpec([None, self.embedding_dim], tf.float32, name="mean")],
        }

    def embed_text(self, table: EmbeddingTable, text: tf.Tensor, training: bool) -> tf.Tensor:
        """All texts end to end, so that a long one costs the short ones nothing."""
        ids, rows = self.flat(text)
        vectors = table.lookup(ids)
        if not training:  # no padding among flat ids, and at least one id in every row
            return self.network(tf.math.segment_mean(vectors, rows), training)
        weights = self.term_weights(ids, training)[:, None]
        total = tf.math.segment_sum(vectors * weights, rows)
        count = tf.math.segment_sum(weights, rows)
        return self.network(total / tf.maximum(count, 1.0), training)

    def embed_ids(self, table: EmbeddingTable, ids: tf.Tensor, training: bool) -> tf.Tensor:
        """The mean over each row, padding left out."""
        weights = tf.reshape(self.term_weights(tf.reshape(ids, [-1]), training), tf.shape(ids))
        total = tf.einsum("bl,bld->bd", weights, table.lookup(ids))
        count = tf.reduce_sum(weights, axis=1, keepdims=True)
        return self.network(total / tf.maximum(count, 1.0), training)


def use_dan_parts(model: USEDAN, vectorizer: Any) -> PooledParts:
    """The pieces of a USE-DAN.

    Raises:
        ValueError: The vocabulary has more ids than the table has rows.
    """
    return PooledParts.of_model(
        model,
        vectorizer,
        rows=model.config.num_embeddings,
        flat=vectorizer.flat,
        term_weights=_term_weights(model),
        network=lambda mean, training: model.network(mean, training=training),
    )


def _term_weights(model: USEDAN) -> Callable[[tf.Tensor, bool], tf.Tensor]:
    """The mask of `NGramEmbedding`, padding and term dropout, over flat ids."""
    embedding = model.embedding

    def term_weights(ids: tf.Tensor, training: bool) -> tf.Tensor:
        weights = tf.cast(ids > 0, tf.float32)
        if training and embedding.term_dropout:
            draw = keras.random.uniform(tf.shape(ids), seed=embedding.seed_generator)
            weights *= tf.cast(draw >= embedding.term_dropout, tf.float32)
        return weights

    return term_weights
