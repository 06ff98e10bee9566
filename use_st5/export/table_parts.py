"""What surrounds the embedding table of an encoder."""

from __future__ import annotations

import abc
import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self

import keras
import tensorflow as tf

from use_st5._model_manifest import ModelManifest
from use_st5.export.embedding_table import EmbeddingTable, table_variables
from use_st5.export.encoder_graph import EncoderGraph, raw_variables, regularization_losses


@dataclasses.dataclass(frozen=True, kw_only=True)
class TableParts(abc.ABC):
    """The pieces of an encoder but for its table, from the Keras model or from a SavedModel.

    A family says how the pieces and a table make embeddings; whatever the storage of the table, and
    wherever the pieces come from, `graph` joins them.

    Attributes:
        preprocess: string `[batch]` → int32 `[batch, length]`, 0 = padding.
        token_counts: string `[batch]` → int32 `[batch]`, tokens before any is cut; None where none
            is, or where a SavedModel of an older version has no such function.
        network: What follows the table; the family says of which tensors, and of `training`.
        dimension: Dimension of the sentence vector.
        embedding_dim: Width of the table.
        max_length: Tokens beyond this number are cut; None where nothing is.
        variables: All but the table's, states of seed generators among them.
        trainable_variables: Those among them that fine-tuning changes.
        regularization_losses: Functions without arguments, each a scalar float32.
        vectorizer: The owner of the hash table and of the vocabulary asset.
    """

    preprocess: Callable[[tf.Tensor], tf.Tensor]
    token_counts: Callable[[tf.Tensor], tf.Tensor] | None
    network: Callable[..., tf.Tensor]
    dimension: int
    embedding_dim: int
    max_length: int | None
    variables: Sequence[tf.Variable]
    trainable_variables: Sequence[tf.Variable]
    regularization_losses: Sequence[Callable[[], tf.Tensor]]
    vectorizer: Any

    # The fields that are functions of the family's own, by which a SavedModel holds them; None is
    # what a SavedModel of an older version lacks.
    PIECES: ClassVar[tuple[str, ...]] = ("network",)

    @classmethod
    def of_model(
        cls,
        model: keras.Model,
        vectorizer: Any,
        *,
        rows: int,
        max_length: int | None = None,
        **pieces: Any,
    ) -> Self:
        """The parts of a Keras model that has its table at `model.embedding.embeddings`.

        Args:
            model: The model, built.
            vectorizer: Gives its ids.
            rows: Of the table, by the model's config.
            max_length: Tokens beyond this number are cut; None cuts nothing.
            **pieces: The fields that `PIECES` names.

        Raises:
            ValueError: The vocabulary has more ids than the table has rows.
        """
        _check_vocabulary(vectorizer, rows)
        embeddings = model.embedding.embeddings
        trained = [each for each in model.trainable_variables if each is not embeddings]
        return cls(
            preprocess=lambda text: vectorizer.padded(text, max_length),
            token_counts=None if max_length is None else vectorizer.token_counts,
            dimension=model.dimension,
            embedding_dim=embeddings.shape[1],
            max_length=max_length,
            variables=raw_variables([each for each in model.variables if each is not embeddings]),
            trainable_variables=raw_variables(trained),
            regularization_losses=regularization_losses(trained),
            vectorizer=vectorizer,
            **pieces,
        )

    @classmethod
    def of_loaded(cls, loaded: Any, manifest: ModelManifest, *, embedding_dim: int) -> Self:
        """The parts of a loaded SavedModel, its card's facts beside it."""
        table = {id(variable) for variable in table_variables(loaded)}
        return cls(
            preprocess=loaded.preprocess,
            token_counts=getattr(loaded, "token_counts", None),
            dimension=manifest.dimension,
            embedding_dim=embedding_dim,
            max_length=manifest.max_length,
            variables=[v for v in loaded.variables if id(v) not in table],
            trainable_variables=[v for v in loaded.trainable_variables if id(v) not in table],
            regularization_losses=list(loaded.regularization_losses),
            vectorizer=loaded.vectorizer,
            **{name: getattr(loaded, name, None) for name in cls.PIECES},
        )

    @abc.abstractmethod
    def embed_ids(self, table: EmbeddingTable, ids: tf.Tensor, training: bool) -> tf.Tensor:
        """Ids int32 `[batch, length]` → float32 `[batch, dimension]`."""

    @abc.abstractmethod
    def piece_inputs(self) -> dict[str, list[tf.TensorSpec]]:
        """What the functions that `PIECES` names take, before `training` where they take it."""

    def embed_text(self, table: EmbeddingTable, text: tf.Tensor, training: bool) -> tf.Tensor:
        """Strings `[batch]` → float32 `[batch, dimension]`."""
        return self.embed_ids(table, self.preprocess(text), training)

    def graph(self, table: EmbeddingTable) -> EncoderGraph:
        """Joins the parts with a table."""
        # Each piece is traced once, and every function of the SavedModel calls that one graph.
        text = [tf.TensorSpec([None], tf.string, name="text")]
        pieces, graphs = {}, {"preprocess": _traced(self.preprocess, text)[1]}
        for name, inputs in self.piece_inputs().items():
            if getattr(self, name) is not None:
                pieces[name], graphs[name] = _traced(getattr(self, name), inputs)
        parts = dataclasses.replace(self, **graphs)
        return EncoderGraph(
            embed_text=functools.partial(parts.embed_text, table),
            embed_ids=functools.partial(parts.embed_ids, table),
            preprocess=parts.preprocess,
            token_counts=self.token_counts,
            dimension=self.dimension,
            max_length=self.max_length,
            storage=table.storage,
            variables=[*table.variables, *self.variables],
            trainable_variables=[*table.trainable_variables, *self.trainable_variables],
            regularization_losses=self.regularization_losses,
            tracked={"vectorizer": self.vectorizer, **table.tracked(), **pieces},
        )


def _traced(piece: Callable[..., Any], inputs: list[tf.TensorSpec]) -> tuple[Any, Any]:
    """A piece as a function to track, and what calls its one graph (with dropout, another)."""
    function = tf.function(piece)
    if inputs[0].dtype == tf.string:
        return function, function.get_concrete_function(*inputs)
    graphs = {t: function.get_concrete_function(*inputs, t) for t in (False, True)}
    return function, lambda *given: graphs[given[-1]](*given[:-1])


def _check_vocabulary(vectorizer: Any, rows: int) -> None:
    if vectorizer.vocabulary.size > rows:
        raise ValueError(
            f"The vocabulary has {vectorizer.vocabulary.size} ids, but the model's table has "
            f"{rows} rows. Export with the vocabulary of the training, or build the model with as "
            "many rows as vocabulary.size says."
        )
