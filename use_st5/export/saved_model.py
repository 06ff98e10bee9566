"""Writes an encoder as a SavedModel that takes strings and gives vectors.

Without dropout, a text takes about 8 bytes of memory for each of its bytes, in a Sentence-T5 up to
40. Invalid UTF-8 is read as U+FFFD, as `use_st5.SentenceEncoder.encode` reads it.
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from use_st5.export.encoder_graph import TEXTS, EncoderGraph
from use_st5.export.stored_weights import Int8Weights, stored_weights
from use_st5.hub.model_manifest import ModelManifest, count_weights, write_folder

_IDS = tf.TensorSpec([None, None], tf.int32, name="ids")
# The prompts that get a signature of their own.
PROMPTED = ("query", "document")
_TRAINING = tf.TensorSpec([], tf.bool, name="training")
# The numbers of a variable whose shape is compared before it is made; 4 MB.
_LARGE = 2**20
# No tokenizer and no network has control flow in Python. AutoGraph would look for it in all
# functions that they call, which doubles the time to write the first small model of a process.
_function = functools.partial(tf.function, autograph=False)


def write_graph(
    graph: EncoderGraph, path: str | os.PathLike[str], *, card: str = "", **facts: Any
) -> ModelManifest:
    """Writes an encoder's graph as a folder that TensorFlow can load without use_st5.

    The object that `tf.saved_model.load` (and so `hub.load`) returns can be called with strings
    `[batch]` and gives float32 `[batch, dimension]`; it takes `training=`. It has `encode_ids`
    (int32 `[batch, length]` → embeddings) and `preprocess` (strings → ids); if texts are cut,
    `token_counts` (strings → int32 `[batch]`, before the cut); and `variables`,
    `trainable_variables` and `regularization_losses`, which `hub.KerasLayer` and
    `use_st5.layers.saved_model_layer.SavedModelLayer` train. Its signatures are `serving_default`
    (`text` → `embeddings`), `query` and `document` (the same with the model's prompt of that name
    before each text, if it has one), `ids` (`ids` → `embeddings`, without string ops) and
    `preprocess` (`text` → `ids`). The vocabulary is an asset inside the folder. The folder also
    contains `use_st5.json` (see `ModelManifest`) and `README.md`, the card.

    A model that compares pairs takes two batches of strings, `first` and `second`, wherever the
    others take `text`, and gives logits `[batch, 1]`; its signatures give `logits` and `scores`,
    `σ(logit)`, both float32 `[batch]`.

    Args:
        graph: The functions, variables and resources of the encoder.
        path: The folder to write; an older model there, and nothing else, is replaced in one step.
        card: The model card, Markdown.
        **facts: The other fields of `ModelManifest`: `name`, `metadata`, `prompts`, and how to
            build the encoder again.

    Returns:
        The manifest that was written.
    """
    root, signatures = _root(graph, facts.get("prompts") or {})
    facts |= {
        "dimension": graph.dimension,
        "texts": graph.texts,
        "max_length": graph.max_length,
        "precision": graph.precision,
        "parameters": count_weights(graph.variables),
        "trainable_parameters": count_weights(graph.trainable_variables),
    }
    return write_folder(root, signatures, path, facts=facts, card=card)


def _root(
    graph: EncoderGraph, prompts: Mapping[str, str]
) -> tuple[tf.train.Checkpoint, dict[str, Any]]:
    """The tracked object of the SavedModel and its signatures."""
    # A Checkpoint, because it tracks all its attributes; a tf.Module's `variables` is read-only.
    root = tf.train.Checkpoint()

    @_function(input_signature=[_IDS, _TRAINING])
    def encode_ids(ids: tf.Tensor, training: bool = False) -> tf.Tensor:
        return _either(graph.embed_ids, (ids,), training)

    root.__call__ = _call(graph)
    root.encode_ids = encode_ids
    root.preprocess = _function(graph.preprocess, input_signature=TEXTS[graph.texts])
    if graph.token_counts is not None:
        root.token_counts = _function(graph.token_counts, input_signature=TEXTS[graph.texts])
    root.variables = list(graph.variables)
    root.trainable_variables = list(graph.trainable_variables)
    root.regularization_losses = [
        _function(loss, input_signature=[]) for loss in graph.regularization_losses
    ]
    for attribute, value in graph.tracked.items():
        setattr(root, attribute, value)
    return root, _signatures(graph, prompts)


def _call(graph: EncoderGraph) -> Callable[..., tf.Tensor]:
    """Strings to vectors, with a signature: each list of strings would trace one more graph."""

    # Users can pass arguments by name, so they have names here.
    def of_text(text: tf.Tensor, training: bool = False) -> tf.Tensor:
        return _either(graph.embed_text, (text,), training)

    def of_pairs(first: tf.Tensor, second: tf.Tensor, training: bool = False) -> tf.Tensor:
        return _either(graph.embed_text, (first, second), training)

    signature = [*TEXTS[graph.texts], _TRAINING]
    return _function(of_text if graph.texts == 1 else of_pairs, input_signature=signature)


def _either(
    embed: Callable[..., tf.Tensor], inputs: tuple[tf.Tensor, ...], training: tf.Tensor
) -> tf.Tensor:
    """Embeds with or without dropout; only one of the two runs."""
    return tf.cond(training, lambda: embed(*inputs, True), lambda: embed(*inputs, False))


def _signatures(graph: EncoderGraph, prompts: Mapping[str, str]) -> dict[str, Any]:
    """The named functions for servers and command lines."""
    names = [text.name for text in TEXTS[graph.texts]]

    def results(vectors: tf.Tensor) -> dict[str, tf.Tensor]:
        if graph.texts == 1:
            return {"embeddings": vectors}
        return {"scores": tf.sigmoid(vectors[:, 0]), "logits": vectors[:, 0]}

    def serving_default(**text: tf.Tensor) -> dict[str, tf.Tensor]:
        return results(graph.embed_text(*(text[name] for name in names), False))

    def ids(ids: tf.Tensor) -> dict[str, tf.Tensor]:
        return results(graph.embed_ids(ids, False))

    def preprocess(**text: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"ids": graph.preprocess(*(text[name] for name in names))}

    def after(prompt: str) -> Callable[[tf.Tensor], dict[str, tf.Tensor]]:
        return lambda text: serving_default(text=tf.strings.join([prompt, text]))

    texts = dict(zip(names, TEXTS[graph.texts], strict=True))
    prompted = {name: after(prompts[name]) for name in PROMPTED if prompts.get(name)}
    return {
        **{
            name: _function(function).get_concrete_function(*TEXTS[1])
            for name, function in prompted.items()
        },
        "serving_default": _function(serving_default).get_concrete_function(**texts),
        "ids": _function(ids).get_concrete_function(_IDS),
        "preprocess": _function(preprocess).get_concrete_function(**texts),
    }


@contextlib.contextmanager
def only_shapes(loaded: Any, config: Mapping[str, Any], folder: Path) -> Iterator[None]:
    """Refuses a Keras model with other shapes than a SavedModel before it takes memory and time.

    The block builds a model of the configuration. Keras must run on TensorFlow; under another
    backend only the number of layers is compared.
    """
    shapes = {tuple(variable.shape) for variable in loaded.variables}

    def refuse_unless(fits: bool, found: str) -> None:
        if not fits:
            reason = f"use_st5.json has {found[:200]}, which the variables do not have"
            raise ValueError(f"{folder}: {reason}. Export the model again.")

    def checked(make: Callable[..., Any], **options: Any) -> Any:
        with tf.Graph().as_default():  # computes no value
            value = options["initial_value"]
            value = value() if callable(value) else value
            shape = tuple(value.shape if hasattr(value, "shape") else np.shape(value))
        refuse_unless(math.prod(shape) < _LARGE or shape in shapes, f"the shape {shape}")
        return make(**options)

    for name, number in _layer_numbers(config):
        refuse_unless(number <= len(loaded.variables), f"{name} {number}")
    with tf.variable_creator_scope(checked):
        yield


def _layer_numbers(config: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """The numbers of layers in a configuration, and the lengths of its lists."""
    for name, value in config.items():
        if isinstance(value, Mapping):
            yield from _layer_numbers(value)
        elif isinstance(value, list):
            yield f"the length of {name}", len(value)
        elif isinstance(value, int) and name.endswith("layers"):
            yield name, value


def restore_weights(model: keras.Model, loaded: Any) -> None:
    """Gives a Keras model the weights of a SavedModel that `write_graph` made from the same kind.

    Weights that are stored in int8 become float32: the codes times their scales.
    """
    weights, targets = stored_weights(loaded.variables), list(model.variables)
    shapes, expected = ([tuple(each.shape) for each in group] for group in (weights, targets))
    if shapes != expected:
        what = f"the weights of a {type(model).__name__}, {expected}, found {shapes}"
        raise ValueError(f"Expected {what}: use_st5.json is of another model. Export it again.")
    for target, weight in zip(targets, weights, strict=True):
        # Assigned as a tensor, because an array would be copied twice; and computed in a graph,
        # which needs no memory for the codes as floats. TensorFlow warns of retracing if it sees
        # the calls of `tf.function`.
        read_value = (
            tf.function(weight.whole).get_concrete_function()
            if isinstance(weight, Int8Weights)
            else weight.value
        )
        target.assign(read_value())
