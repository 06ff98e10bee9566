"""The family of StaticEmbedding: tokenizers, checkpoints, precisions and graph."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import tensorflow as tf

from use_st5.convert.checkpoint import Checkpoint
from use_st5.convert.weights import (
    RenamedSource,
    Target,
    WeightSource,
    assign_weights,
    check_shapes,
    listed,
)
from use_st5.export.encoder_graph import TEXTS, EncoderGraph, graph_of
from use_st5.export.stored_weights import stored_table
from use_st5.layers.random_normal import without_initial_values
from use_st5.models.bert.checkpoint import padding_first
from use_st5.models.bert.family import read_framed_tokenizer
from use_st5.models.family import Family
from use_st5.models.static_embedding.model import FRAME, StaticEmbedding
from use_st5.tokenizers.byte_pair_tokenizer import BytePairTokenizer
from use_st5.tokenizers.framed_tokenizer import FramedTokenizer
from use_st5.tokenizers.long_texts import beginnings, summed
from use_st5.tokenizers.sentencepiece_tokenizer import FramedSentencePieceTokenizer
from use_st5.tokenizers.tokenizer import Tokenizer
from use_st5.tokenizers.wordpiece_tokenizer import WordPieceTokenizer

_LABEL = "StaticEmbedding"
# Names of the table in sentence-transformers and in model2vec.
_NAMES = ("embedding.weight", "embeddings")
# The row of each token, and its factor: model2vec may store them beside its table.
_FOLDED = ("mapping", "weights")
_TOKENIZERS = (WordPieceTokenizer, BytePairTokenizer, FramedSentencePieceTokenizer)


class StaticEmbeddingFamily(Family):
    """The mean of the table rows of a text's tokens (`StaticEmbedding`), for any length."""

    name = "static_embedding"
    model_types = (StaticEmbedding,)
    presets: ClassVar = {}
    tokenizers: ClassVar = {each.kind: each for each in _TOKENIZERS}
    precisions = ("float32", "int8")
    poolings = ("mean",)
    reads = (_LABEL, "model2vec")
    # The rates of USE-DAN, which averages the rows of a table too.
    learning_rates: ClassVar = {
        **{"": 1e-4, "pairs": 1e-3, "scored_pairs": 3e-4},
        **{"labels": 1e-3, "inference": 1e-3, "few_labels": 1e-3},
    }

    def graph(
        self,
        model: StaticEmbedding,
        tokenizer: Tokenizer,
        *,
        precision: str,
        max_length: int | None,
    ) -> EncoderGraph:
        """The graph; it does not pad texts, and does not look up the special tokens."""
        if not isinstance(tokenizer, FramedTokenizer):
            raise ValueError(f"Expected a FramedTokenizer, received a {type(tokenizer).__name__}.")
        table = stored_table(model.embedding.embeddings, precision)
        room = None if max_length is None else max_length - FRAME

        def flat(text: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            pieces = tokenizer.pieces(text if room is None else beginnings(text, room))
            pieces = pieces if room is None else pieces[:, :room]
            if not model.ignored_id:
                return pieces.values, pieces.value_rowids()
            kept = tf.not_equal(pieces.values, model.ignored_id)
            values = (pieces.values, pieces.value_rowids())
            return tuple(tf.boolean_mask(each, kept) for each in values)

        ids_of = graph_of(flat, TEXTS[1])

        def sums(text: tf.Tensor) -> tf.Tensor:
            """The sum of each text's table rows, followed by their number."""
            ids, rows = ids_of(text)
            parts = (table.lookup(ids), tf.ones([tf.size(ids), 1]))
            part_sums = [tf.math.unsorted_segment_sum(each, rows, tf.size(text)) for each in parts]
            return tf.concat(part_sums, axis=1)

        def embed_text(text: tf.Tensor, training: bool) -> tf.Tensor:
            if training or room is not None:
                total = sums(text)
            else:  # In parts: a long text may have millions of rows, too many for the memory.
                width = model.embedding.output_dim
                zeros = tf.zeros([tf.size(text), width + 1], tf.float64)
                total = summed(text, sums, zeros, keep_spaces=tokenizer.keeps_spaces)
            mean = total[:, :-1] / tf.maximum(total[:, -1:], 1)
            return model.scaled(tf.cast(mean, tf.float32))

        return EncoderGraph.of_model(
            model,
            tokenizer,
            table,
            max_length=max_length,
            embed_text=embed_text,
            embed_ids=lambda ids, training: model.encode_embedded(table.lookup(ids), ids),
            preprocess=graph_of(lambda text: tokenizer.padded(text, max_length), TEXTS[1]),
        )

    def can_read(self, checkpoint: Checkpoint) -> bool:
        """Whether a folder is model2vec's, or sentence-transformers' with a StaticEmbedding."""
        if checkpoint.modules is not None:
            return checkpoint.modules.static
        return checkpoint.settings.get("model_type") == "model2vec"

    def read(
        self, checkpoint: Checkpoint, *, dtype: Any = None
    ) -> tuple[StaticEmbedding, FramedTokenizer]:
        """A model with the table of the checkpoint, and its tokenizer."""
        own = _TokenRows(checkpoint.source)
        shapes = own.shapes()
        if len(shapes) != 1 or not {*shapes} <= {*_NAMES} or len(*shapes.values()) != 2:
            where, names = checkpoint.source.where, " or ".join(_NAMES)
            raise ValueError(f"{where}: expected one table {names}, found {listed(shapes)}.")
        ((name, (rows, width)),) = shapes.items()
        counted = dataclasses.replace(checkpoint, settings={"vocab_size": rows})
        tokenizer = read_framed_tokenizer(counted, _LABEL, _TOKENIZERS, needs_frame=False)
        first_rows = padding_first(tokenizer.padding_id, name)
        source = RenamedSource(own, {name: name}, first_rows=first_rows)
        check_shapes({name: (rows, width)}, source)
        settings, modules = checkpoint.settings, checkpoint.modules
        normalize = settings.get("normalize") is True if modules is None else modules.normalize
        # model2vec also writes modules.json, whose reader, sentence-transformers, keeps this id.
        ignored = tokenizer.unknown_id if settings.get("model_type") == "model2vec" else None
        model = StaticEmbedding(
            rows, width, normalize=normalize, ignored_id=ignored or 0, dtype=dtype
        )
        with without_initial_values():
            model.build()
        assign_weights({name: Target(model.embedding.embeddings)}, source)
        return model, tokenizer


class _TokenRows(WeightSource):
    """The table of a checkpoint with a row for each token: `embeddings[mapping] · weights`."""

    def __init__(self, source: WeightSource) -> None:
        self.where = source.where
        self._source = source

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Name → shape, without the tensors that `pieces` joins with the table."""
        stored = self._source.shapes()
        shapes = {name: shape for name, shape in stored.items() if name not in _FOLDED}
        for name, shape in shapes.items():
            count, row = stored.get("mapping", shape[:1]), shape[1:]
            if any(stored.get(folded, count) != count for folded in _FOLDED):
                raise ValueError(f"{self.where}: expected a weight for each of {count} tokens.")
            shapes[name] = (*count, *row)
        return shapes

    def read(self, name: str) -> np.ndarray:
        """The table `[tokens, width]`."""
        return np.concatenate([*self.pieces(name)])

    def pieces(self, name: str) -> Iterator[np.ndarray]:
        """The table in pieces of some rows; as one if it has a mapping."""
        stored, pieces, end = self._source.shapes(), self._source.pieces(name), 0
        if "mapping" in stored:
            table, rows = self._source.read(name), self._source.read("mapping")
            if rows.dtype.kind not in "iu" or not (rows.min() >= 0 and rows.max() < len(table)):
                raise ValueError(f"{self.where}: mapping: expected rows of the {len(table):,}.")
            pieces = iter([table[rows]])
        factors = self._source.read("weights") if "weights" in stored else None
        for piece in pieces:
            if piece.dtype == np.int8:  # Without a scale: only the direction counts.
                piece = piece.astype(np.float32)
            start, end = end, end + len(piece)
            yield piece if factors is None else piece * np.float32(factors[start:end, None])


FAMILY = StaticEmbeddingFamily()
