"""Writing an encoder as a SavedModel that takes strings and gives vectors.

Memory of what is written: where strings are encoded without dropout, a text of 100 MB takes about
0.8 GB above the model, 8 bytes for each of its own; one of nothing but punctuation, which gets a
space beside each character, half as much again. In a Sentence-T5 that holds for texts with single
spaces between ASCII characters; others take 40 times their size. `preprocess` of a model that cuts
nothing, and training, hold all ids and vectors of a batch. Bytes that are no UTF-8 are read as
U+FFFD, as `use_st5.SentenceEncoder.encode` reads them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from use_st5._model_manifest import ModelManifest, check_replaceable
from use_st5._model_writer import count_weights, write_folder
from use_st5.export.embedding_table import stored_table
from use_st5.export.encoder_graph import EncoderGraph, padded_graph
from use_st5.export.padded_parts import sentence_t5_parts, use_transformer_parts
from use_st5.export.pooled_parts import use_dan_parts
from use_st5.export.table_parts import TableParts
from use_st5.models.t5.sentence_t5 import SentenceT5
from use_st5.models.use_dan.model import USEDAN
from use_st5.models.use_transformer.model import USETransformer

STORAGES = ("float32", "int8")

_TEXT = tf.TensorSpec([None], tf.string, name="text")
_IDS = tf.TensorSpec([None, None], tf.int32, name="ids")
_TRAINING = tf.TensorSpec([], tf.bool, name="training")


def export_saved_model(
    model: keras.Model,
    vectorizer: Any,
    path: str | os.PathLike[str],
    *,
    name: str,
    storage: str = "float32",
    max_length: int | None = None,
    card: str = "",
    metadata: dict[str, Any] | None = None,
) -> ModelManifest:
    """Writes a trained encoder as a folder that TensorFlow alone can load and run.

    What `tf.saved_model.load` (and so `hub.load`) gives back can be called with strings `[batch]`
    and gives float32 `[batch, dimension]`; it takes `training=`; it has `encode_ids` (int32
    `[batch, length]` → embeddings) and `preprocess` (strings → ids); where texts are cut,
    `token_counts` (strings → int32 `[batch]`, before the cut); `variables`,
    `trainable_variables` and `regularization_losses`, which `hub.KerasLayer` and
    `use_st5.layers.saved_model_layer.SavedModelLayer` train. Its signatures are `serving_default`
    (`text` → `embeddings`), `ids` (`ids` → `embeddings`, free of string ops) and `preprocess`
    (`text` → `ids`). The vocabulary is an asset inside the folder. Beside them lie `use_st5.json`
    (see `ModelManifest`) and `README.md`, the card.

    Args:
        model: A `USEDAN`, a `USETransformer`, or any Keras model int32 `[batch, length]` → float32
            `[batch, dimension]` with an attribute `dimension`.
        vectorizer: Trackable, with `padded(text, max_length)`, `token_counts(text)` where there is
            a `max_length`, and `flat(text)` for a `USEDAN`.
        path: The folder to write; an older model there, and nothing else, is replaced in one step.
        name: Name of the model.
        storage: "float32", or "int8" for an embedding table at a quarter of the size whose row
            scales, not entries, can be fine-tuned (`Int8Table`). "int8" is for the two USEs and for
            a `SentenceT5` without a decoder.
        max_length: Tokens beyond this number are cut; None cuts nothing, but for a `USETransformer`
            means its own limit, `config.max_length`, above which it must not be. Not for `USEDAN`.
        card: The model card, Markdown.
        metadata: Facts for `use_st5.json`, such as `languages` and `license`.

    Returns:
        The written description.

    Raises:
        ValueError: The storage, `max_length` or Keras's backend does not fit the model.
        FileExistsError: `path` holds anything but a model that use_st5 wrote.
        BlockingIOError: Another process is writing `path`.
    """
    check_replaceable(path)
    if storage not in STORAGES:
        raise ValueError(f"Unknown storage: {storage!r}. Expected one of {STORAGES}.")
    parts = _table_parts(model, vectorizer, max_length, storage)
    if parts is not None:
        graph = parts.graph(stored_table(model.embedding.embeddings, storage))
    elif storage == "float32":
        graph = padded_graph(model, vectorizer, max_length=max_length)
    else:
        raise ValueError(
            f'storage="{storage}" is for the embedding table of a USEDAN, a USETransformer or a '
            f'SentenceT5; export a {type(model).__name__} with storage="float32".'
        )
    return write_graph(graph, path, name=name, card=card, metadata=metadata)


def _table_parts(
    model: keras.Model, vectorizer: Any, max_length: int | None, storage: str
) -> TableParts | None:
    """The parts around the table where it is stored apart; None where it is not.

    A Sentence-T5 in float32 is written whole: it may be of billions of parameters, or of bfloat16.
    """
    if isinstance(model, USEDAN):
        if max_length is not None:
            raise ValueError(
                "A USE-DAN reads texts of any length: leave max_length out. "
                f"Received: max_length={max_length}"
            )
        return use_dan_parts(model, vectorizer)
    if isinstance(model, USETransformer):
        return use_transformer_parts(model, vectorizer, max_length=max_length)
    if isinstance(model, SentenceT5) and storage == "int8":
        return sentence_t5_parts(model, vectorizer, max_length=max_length)
    return None


def write_graph(
    graph: EncoderGraph,
    path: str | os.PathLike[str],
    *,
    name: str,
    card: str = "",
    metadata: dict[str, Any] | None = None,
) -> ModelManifest:
    """Writes an encoder's graph; `export_saved_model` says what the folder holds."""
    root, signatures = _root(graph)
    facts = {
        "name": name,
        "dimension": graph.dimension,
        "max_length": graph.max_length,
        "storage": graph.storage,
        "parameters": count_weights(graph.variables),
        "trainable_parameters": count_weights(graph.trainable_variables),
        "metadata": metadata or {},
    }
    return write_folder(root, signatures, path, facts=facts, card=card)


def _root(graph: EncoderGraph) -> tuple[tf.train.Checkpoint, dict[str, Any]]:
    """The tracked object of the SavedModel and its signatures."""
    # A Checkpoint, because it tracks whatever is set on it; a tf.Module's `variables` is read-only.
    root = tf.train.Checkpoint()

    # Signatures, and so a tensor for `training`: without them, every list of strings that a user
    # passes to the loaded model would trace, and keep, one more graph.
    @tf.function(input_signature=[_TEXT, _TRAINING])
    def call(text: tf.Tensor, training: bool = False) -> tf.Tensor:
        return _either(graph.embed_text, text, training)

    @tf.function(input_signature=[_IDS, _TRAINING])
    def encode_ids(ids: tf.Tensor, training: bool = False) -> tf.Tensor:
        return _either(graph.embed_ids, ids, training)

    root.__call__ = call
    root.encode_ids = encode_ids
    root.preprocess = tf.function(graph.preprocess, input_signature=[_TEXT])
    if graph.token_counts is not None:
        root.token_counts = tf.function(graph.token_counts, input_signature=[_TEXT])
    root.variables = list(graph.variables)
    root.trainable_variables = list(graph.trainable_variables)
    root.regularization_losses = [
        tf.function(loss, input_signature=[]) for loss in graph.regularization_losses
    ]
    for attribute, value in graph.tracked.items():
        setattr(root, attribute, value)
    return root, _signatures(graph)


def _either(
    embed: Callable[[tf.Tensor, bool], tf.Tensor], inputs: tf.Tensor, training: tf.Tensor
) -> tf.Tensor:
    """Embeds with dropout or without; one of the two runs."""
    return tf.cond(training, lambda: embed(inputs, True), lambda: embed(inputs, False))


def _signatures(graph: EncoderGraph) -> dict[str, Any]:
    """The named functions for servers and command lines."""

    def serving_default(text: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"embeddings": graph.embed_text(text, False)}

    def ids(ids: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"embeddings": graph.embed_ids(ids, False)}

    def preprocess(text: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"ids": graph.preprocess(text)}

    return {
        "serving_default": tf.function(serving_default).get_concrete_function(_TEXT),
        "ids": tf.function(ids).get_concrete_function(_IDS),
        "preprocess": tf.function(preprocess).get_concrete_function(_TEXT),
    }
