"""The lean graph of encoders that average embeddings and end in a network (USE-DAN)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar

import keras
import tensorflow as tf

from use_st5.export.embedding_table import EmbeddingTable
from use_st5.export.table_parts import TableParts
from use_st5.models.use_dan.model import USEDAN
from use_st5.text.long_texts import are_long, fold


@dataclasses.dataclass(frozen=True, kw_only=True)
class PooledParts(TableParts):
    """The pieces of a deep averaging network, whose texts are never padded.

    Attributes:
        flat: string `[batch]` → (ids int32 `[terms]`, rows int32 `[terms]`, sorted).
        pieces: string `[batch]` → what `block` reads, as `NGramVectorizer.pieces` gives it.
        block: Some successive pieces → their ids and rows, as `NGramVectorizer.block` gives them.
        term_weights: ids int32 `[terms]`, training → float32 `[terms]`: 0 for padding and for
            terms dropped in training, else 1.
        network: float32 `[batch, embedding_dim]`, training → float32 `[batch, dimension]`.
    """

    flat: Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]]
    pieces: Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]] | None
    block: Callable[..., tuple[tf.Tensor, ...]] | None
    term_weights: Callable[[tf.Tensor, bool], tf.Tensor]

    PIECES: ClassVar[tuple[str, ...]] = ("flat", "pieces", "block", "term_weights", "network")

    def piece_inputs(self) -> dict[str, list[tf.TensorSpec]]:
        """What the five pieces take."""
        text, row = tf.TensorSpec([None], tf.string), tf.TensorSpec([None], tf.int32)
        return {
            "flat": [text],
            "pieces": [text],
            "block": [text, row, tf.TensorSpec([], tf.string), tf.TensorSpec([], tf.int32)],
            "term_weights": [tf.TensorSpec([None], tf.int32, name="ids")],
            "network": [tf.TensorSpec([None, self.embedding_dim], tf.float32, name="mean")],
        }

    def embed_text(self, table: EmbeddingTable, text: tf.Tensor, training: bool) -> tf.Tensor:
        """All texts end to end, so that a long one costs the short ones nothing.

        Long texts are read a block at a time, but for training, which keeps every term's vector.
        """
        if not training:
            if self.pieces is None:
                return self.network(self._mean(table, text), training)
            mean = tf.cond(
                are_long(text),
                lambda: self._mean_of_long(table, text),
                lambda: self._mean(table, text),
            )
            return self.network(mean, training)
        ids, rows = self.flat(text)
        vectors = table.lookup(ids)
        weights = self.term_weights(ids, training)[:, None]
        total = tf.math.segment_sum(vectors * weights, rows)
        count = tf.math.segment_sum(weights, rows)
        return self.network(total / tf.maximum(count, 1.0), training)

    def _mean(self, table: EmbeddingTable, text: tf.Tensor) -> tf.Tensor:
        """No padding is among flat ids, and at least one id in every row."""
        ids, rows = self.flat(text)
        return tf.math.segment_mean(table.lookup(ids), rows)

    def _mean_of_long(self, table: EmbeddingTable, text: tf.Tensor) -> tf.Tensor:
        """The same in bounded memory, summed up in float64: there may be millions of terms."""
        pieces, rows = self.pieces(text)
        batch = tf.size(text)

        def read(
            pieces: tf.Tensor, rows: tf.Tensor, total: tf.Tensor, count: tf.Tensor, *last: tf.Tensor
        ) -> tuple[tf.Tensor, ...]:
            ids, rows, *last = self.block(pieces, rows, *last)
            more = tf.math.unsorted_segment_sum(table.lookup(ids), rows, batch)
            terms = tf.math.unsorted_segment_sum(tf.ones_like(ids, tf.float64), rows, batch)
            return total + tf.cast(more, tf.float64), count + terms[:, None], *last

        zeros = tf.zeros([batch, self.embedding_dim], tf.float64)
        state = (zeros, zeros[:, :1], tf.constant(""), tf.constant(-1))
        total, count, *_ = fold(read, state, pieces, rows)
        return tf.cast(total / count, tf.float32)

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
        pieces=vectorizer.pieces,
        block=vectorizer.block,
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
