"""The lean graph of encoders that average embeddings and end in a network (USE-DAN)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import keras
import tensorflow as tf

from use_st5.export.encoder_graph import EncoderGraph, raw_variables, regularization_losses
from use_st5.export.float32_table import Float32Table
from use_st5.export.int8_table import Int8Table
from use_st5.models.use_dan import USEDAN


class _Table(Protocol):
    storage: str
    variables: list[tf.Variable]
    trainable_variables: list[tf.Variable]

    def lookup(self, ids: tf.Tensor) -> tf.Tensor: ...

    def tracked(self) -> dict[str, tf.Variable]: ...


@dataclasses.dataclass(frozen=True, kw_only=True)
class PooledParts:
    """The pieces of a deep averaging network, from the Keras model or from a SavedModel.

    Attributes:
        flat: string `[batch]` → (ids int32 `[terms]`, rows int32 `[terms]`, sorted).
        preprocess: string `[batch]` → int32 `[batch, length]`, 0 = padding.
        term_weights: ids int32 `[terms]`, training → float32 `[terms]`: 0 for padding and for
            terms dropped in training, else 1.
        network: float32 `[batch, embedding_dim]`, training → float32 `[batch, dimension]`.
        dimension: Dimension of the sentence vector.
        embedding_dim: Width of the table.
        variables: Those of the network and of the seed generators, without the table's.
        trainable_variables: Those of the network.
        regularization_losses: Functions without arguments, each a scalar float32.
        vectorizer: The owner of the hash table and of the vocabulary asset.
    """

    flat: Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]]
    preprocess: Callable[[tf.Tensor], tf.Tensor]
    term_weights: Callable[[tf.Tensor, bool], tf.Tensor]
    network: Callable[[tf.Tensor, bool], tf.Tensor]
    dimension: int
    embedding_dim: int
    variables: Sequence[tf.Variable]
    trainable_variables: Sequence[tf.Variable]
    regularization_losses: Sequence[Callable[[], tf.Tensor]]
    vectorizer: Any


def use_dan_graph(model: USEDAN, vectorizer: Any, *, storage: str) -> EncoderGraph:
    """The graph of a USE-DAN with its table in the given storage, "float32" or "int8".

    Raises:
        ValueError: The vocabulary has more ids than the table has rows.
    """
    if vectorizer.vocabulary.size > model.config.num_embeddings:
        raise ValueError(
            f"The vocabulary has {vectorizer.vocabulary.size} ids, but the model's table has "
            f"{model.config.num_embeddings} rows. Export with the vocabulary of the training, or "
            "build the model with num_embeddings=vocabulary.size."
        )
    embeddings = model.embedding.embeddings
    if storage == "int8":
        table: _Table = Int8Table.from_float(embeddings.numpy())
    else:
        table = Float32Table(*raw_variables([embeddings]))
    rest = [variable for variable in model.variables if variable is not embeddings]
    trained = [variable for variable in model.trainable_variables if variable is not embeddings]
    parts = PooledParts(
        flat=vectorizer.flat,
        preprocess=lambda text: vectorizer.padded(text, None),
        term_weights=_term_weights(model),
        network=lambda mean, training: model.network(mean, training=training),
        dimension=model.dimension,
        embedding_dim=model.config.embedding_dim,
        variables=raw_variables(rest),
        trainable_variables=raw_variables(trained),
        regularization_losses=regularization_losses(trained),
        vectorizer=vectorizer,
    )
    return pooled_graph(parts, table)


def pooled_graph(parts: PooledParts, table: _Table) -> EncoderGraph:
    """Joins the pieces of a deep averaging network with an embedding table."""

    def embed_text(text: tf.Tensor, training: bool) -> tf.Tensor:
        ids, rows = parts.flat(text)
        vectors = table.lookup(ids)
        if not training:  # no padding among flat ids, and at least one id in every row
            return parts.network(tf.math.segment_mean(vectors, rows), training)
        weights = parts.term_weights(ids, training)[:, None]
        total = tf.math.segment_sum(vectors * weights, rows)
        count = tf.math.segment_sum(weights, rows)
        return parts.network(total / tf.maximum(count, 1.0), training)

    def embed_ids(ids: tf.Tensor, training: bool) -> tf.Tensor:
        weights = tf.reshape(parts.term_weights(tf.reshape(ids, [-1]), training), tf.shape(ids))
        total = tf.einsum("bl,bld->bd", weights, table.lookup(ids))
        count = tf.reduce_sum(weights, axis=1, keepdims=True)
        return parts.network(total / tf.maximum(count, 1.0), training)

    return EncoderGraph(
        embed_text=embed_text,
        embed_ids=embed_ids,
        preprocess=parts.preprocess,
        dimension=parts.dimension,
        max_length=None,
        storage=table.storage,
        variables=[*table.variables, *parts.variables],
        trainable_variables=[*table.trainable_variables, *parts.trainable_variables],
        regularization_losses=parts.regularization_losses,
        tracked={"vectorizer": parts.vectorizer, **table.tracked(), **_pieces(parts)},
    )


def parts_of(loaded: Any, *, dimension: int, embedding_dim: int) -> PooledParts:
    """The pieces of a deep averaging network out of its loaded SavedModel."""
    table = {id(variable) for variable in _table_variables(loaded)}
    return PooledParts(
        flat=loaded.flat,
        preprocess=loaded.preprocess,
        term_weights=loaded.term_weights,
        network=loaded.network,
        dimension=dimension,
        embedding_dim=embedding_dim,
        variables=[v for v in loaded.variables if id(v) not in table],
        trainable_variables=[v for v in loaded.trainable_variables if id(v) not in table],
        regularization_losses=list(loaded.regularization_losses),
        vectorizer=loaded.vectorizer,
    )


def _table_variables(loaded: Any) -> list[tf.Variable]:
    names = ("table", "table_codes", "table_scales")
    return [getattr(loaded, name) for name in names if hasattr(loaded, name)]


def _pieces(parts: PooledParts) -> dict[str, Any]:
    """The pieces as functions of their own, for `parts_of` and for training on ids."""
    flat = tf.function(parts.flat)
    flat.get_concrete_function(tf.TensorSpec([None], tf.string, name="text"))
    term_weights, network = tf.function(parts.term_weights), tf.function(parts.network)
    for training in (False, True):
        term_weights.get_concrete_function(tf.TensorSpec([None], tf.int32, name="ids"), training)
        mean = tf.TensorSpec([None, parts.embedding_dim], tf.float32, name="mean")
        network.get_concrete_function(mean, training)
    return {"flat": flat, "term_weights": term_weights, "network": network}


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
