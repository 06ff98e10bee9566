"""The graph of encoders that read one row of embeddings for each token (Transformers)."""

from __future__ import annotations

import dataclasses
from typing import Any

import tensorflow as tf

from use_st5.export.embedding_table import EmbeddingTable
from use_st5.export.table_parts import TableParts
from use_st5.models.t5.sentence_t5 import SentenceT5
from use_st5.models.use_transformer.model import USETransformer


@dataclasses.dataclass(frozen=True, kw_only=True)
class PaddedParts(TableParts):
    """The pieces of an encoder over padded rows of tokens.

    Attributes:
        network: float32 `[batch, length, embedding_dim]`, bool `[batch, length]` (False for
            padding), training → float32 `[batch, dimension]`.
    """

    def piece_inputs(self) -> dict[str, list[tf.TensorSpec]]:
        """What the network takes."""
        vectors = tf.TensorSpec([None, None, self.embedding_dim], tf.float32, name="vectors")
        return {"network": [vectors, tf.TensorSpec([None, None], tf.bool, name="tokens")]}

    def embed_ids(self, table: EmbeddingTable, ids: tf.Tensor, training: bool) -> tf.Tensor:
        """Every row of the table once, in the order of the text."""
        return self.network(table.lookup(ids), ids > 0, training)


def use_transformer_parts(
    model: USETransformer, vectorizer: Any, *, max_length: int | None
) -> PaddedParts:
    """The pieces of a USE Transformer.

    Args:
        model: The model, built.
        vectorizer: Gives its ids.
        max_length: Tokens beyond this number are cut; None: the number in the model's config.

    Raises:
        ValueError: `max_length` is above the model's, or below 1; the vocabulary has more ids than
            the table has rows.
    """
    limit = model.config.max_length
    max_length = limit if max_length is None else max_length
    if not 1 <= max_length <= limit:
        raise ValueError(
            f"max_length: expected 1 to {limit}, the most that this USE Transformer reads "
            f"(config.max_length), received {max_length}."
        )
    return _parts(model, vectorizer, model.config.num_embeddings, max_length)


def sentence_t5_parts(model: SentenceT5, vectorizer: Any, *, max_length: int | None) -> PaddedParts:
    """The pieces of a Sentence-T5.

    Args:
        model: The model, built.
        vectorizer: Gives its ids.
        max_length: Tokens beyond this number are cut; None cuts nothing.

    Raises:
        ValueError: The model has a decoder, which reads the table, too; the vocabulary has more ids
            than the table has rows.
    """
    if model.decoder is not None:
        raise ValueError(
            'Expected a Sentence-T5 whose vectors are the encoder\'s (pooling "mean" or "first"): '
            'the decoder reads the table, too. Export one of pooling "decoder" with '
            'storage="float32".'
        )
    return _parts(model, vectorizer, model.config.vocabulary_size, max_length)


def _parts(
    model: SentenceT5 | USETransformer, vectorizer: Any, rows: int, max_length: int | None
) -> PaddedParts:
    return PaddedParts.of_model(
        model,
        vectorizer,
        rows=rows,
        max_length=max_length,
        network=lambda vectors, tokens, training: model.encode_embedded(
            vectors, tokens, training=training
        ),
    )
