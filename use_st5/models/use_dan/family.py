"""The family of USE-DAN: presets, tokenizer, precisions and graph."""

from __future__ import annotations

from typing import ClassVar

import keras
import tensorflow as tf

from use_st5.export.encoder_graph import EncoderGraph, graph_of, network_of
from use_st5.export.stored_weights import EmbeddingTable, stored_table
from use_st5.models.family import Family
from use_st5.models.use_dan.model import USE_DAN_PRESETS, USEDAN
from use_st5.tokenizers.long_texts import are_long, fold
from use_st5.tokenizers.ngram_tokenizer import NGramTokenizer
from use_st5.tokenizers.tokenizer import Tokenizer

_RUN = 256  # ids that are summed in float32


class USEDANFamily(Family):
    """Averaged word and bi-gram embeddings (`USEDAN`), for texts of any length."""

    name = "use_dan"
    model_types = (USEDAN,)
    presets = USE_DAN_PRESETS
    tokenizers: ClassVar = {NGramTokenizer.kind: NGramTokenizer}
    precisions = ("float32", "int8")
    learning_rates: ClassVar = {
        **{"": 1e-4, "pairs": 1e-3, "scored_pairs": 3e-4},
        **{"labels": 1e-3, "inference": 1e-3, "few_labels": 1e-3},
    }
    # Random dense layers preserve the similarity of their inputs. Training on a few thousand pairs
    # destroys this before it teaches anything better (docs/own_data_results.md).
    train_only_when_fresh = "embedding"

    def graph(
        self, model: USEDAN, tokenizer: Tokenizer, *, precision: str, max_length: int | None
    ) -> EncoderGraph:
        """The lean graph, which does not pad texts."""
        if max_length is not None:
            raise ValueError(f"A USE-DAN reads any length: max_length={max_length} must be None.")
        if not isinstance(tokenizer, NGramTokenizer):
            raise ValueError(f"Expected an NGramTokenizer, received {type(tokenizer).__name__}.")
        table = stored_table(model.embedding.embeddings, precision)
        mean = MeanOfTerms(model, tokenizer, table)
        vector = tf.TensorSpec([None, model.config.embedding_dim], tf.float32)
        network = network_of(
            lambda mean, training: model.network(mean, training=training), [vector], model
        )
        return EncoderGraph.of_model(
            model,
            tokenizer,
            table,
            max_length=None,
            embed_text=lambda text, training: network(mean.of_text(text, training), training),
            embed_ids=lambda ids, training: network(mean.of_ids(ids, training), training),
            preprocess=graph_of(tokenizer.padded, [tf.TensorSpec([None], tf.string)]),
        )


class MeanOfTerms:
    """The first stage of a USE-DAN in a SavedModel: the mean of its terms' embeddings.

    Args:
        model: The USE-DAN.
        tokenizer: Makes the ids of the terms.
        table: The stored form of the model's table.
    """

    def __init__(self, model: USEDAN, tokenizer: NGramTokenizer, table: EmbeddingTable) -> None:
        text, row = tf.TensorSpec([None], tf.string), tf.TensorSpec([None], tf.int32)
        last, last_row = tf.TensorSpec([], tf.string), tf.TensorSpec([], tf.int32)
        self._flat = graph_of(tokenizer.flat, [text])
        self._pieces = graph_of(tokenizer.pieces, [text])
        self._block = graph_of(tokenizer.block, [text, row, last, last_row])
        self._table = table
        self._embedding = model.embedding
        self._width = model.config.embedding_dim

    def of_text(self, text: tf.Tensor, training: bool) -> tf.Tensor:
        """Strings `[batch]` → float32 `[batch, embedding_dim]`.

        The terms of all texts form one flat list, so that a long text causes no padding of short
        ones. Long texts are read block by block, except in training, which keeps the vector of
        every term.
        """
        if not training:
            return tf.cond(are_long(text), lambda: self._of_long(text), lambda: self._of_all(text))
        ids, rows = self._flat(text)
        weights = self._weights(ids, training)[:, None]
        total = tf.math.segment_sum(self._table.lookup(ids) * weights, rows)
        count = tf.math.segment_sum(weights, rows)
        return total / tf.maximum(count, 1.0)

    def of_ids(self, ids: tf.Tensor, training: bool) -> tf.Tensor:
        """The mean over each row of int32 `[batch, length]`, without padding."""
        weights = tf.reshape(self._weights(tf.reshape(ids, [-1]), training), tf.shape(ids))
        total = tf.einsum("bl,bld->bd", weights, self._table.lookup(ids))
        count = tf.reduce_sum(weights, axis=1, keepdims=True)
        return total / tf.maximum(count, 1.0)

    def _weights(self, ids: tf.Tensor, training: bool) -> tf.Tensor:
        """The mask of `NGramEmbedding` (padding and term dropout) for flat ids."""
        weights = tf.cast(ids > 0, tf.float32)
        dropout, seed = self._embedding.term_dropout, self._embedding.seed_generator
        if training and dropout:
            draw = keras.random.uniform(tf.shape(ids), dtype="float32", seed=seed)
            weights *= tf.cast(draw >= dropout, tf.float32)
        return weights

    def _of_all(self, text: tf.Tensor) -> tf.Tensor:
        """The mean of each text: flat ids contain no padding, and at least one id per text."""
        ids, rows = self._flat(text)
        batch = tf.size(text)
        count = tf.math.unsorted_segment_sum(tf.ones_like(ids, tf.float64), rows, batch)
        return tf.cast(self._sums(ids, rows, batch) / count[:, None], tf.float32)

    def _sums(self, ids: tf.Tensor, rows: tf.Tensor, batch: tf.Tensor) -> tf.Tensor:
        """The sum of each text's rows of the table, float64 `[batch, width]`.

        Runs of 256 ids are summed in float32, which loses digits in longer sums, and runs in
        float64. Rows and positions only grow, so ids of the same run are of the same text.
        """
        runs = rows + tf.range(tf.size(rows)) // _RUN
        # There may be numbers of runs without ids: their sum is 0, and their text is the first.
        totals = tf.math.segment_sum(self._table.lookup(ids), runs)
        run_rows = tf.math.segment_max(rows, runs)
        return tf.math.unsorted_segment_sum(tf.cast(totals, tf.float64), run_rows, batch)

    def _of_long(self, text: tf.Tensor) -> tf.Tensor:
        """The same mean in bounded memory, summed in float64: there may be millions of terms."""
        pieces, rows = self._pieces(text)
        batch = tf.size(text)

        def read(
            pieces: tf.Tensor, rows: tf.Tensor, total: tf.Tensor, count: tf.Tensor, *last: tf.Tensor
        ) -> tuple[tf.Tensor, ...]:
            ids, rows, *last = self._block(pieces, rows, *last)
            block_total = self._sums(ids, rows, batch)
            terms = tf.math.unsorted_segment_sum(tf.ones_like(ids, tf.float64), rows, batch)
            return total + block_total, count + terms[:, None], *last

        zeros = tf.zeros([batch, self._width], tf.float64)
        state = (zeros, zeros[:, :1], tf.constant(""), tf.constant(-1))
        total, count, *_ = fold(read, state, pieces, rows)
        return tf.cast(total / count, tf.float32)


FAMILY = USEDANFamily()
