"""What learns: a bundled model, a folder, a checkpoint, or a fresh model with its vocabulary."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import keras

from use_st5.models.family import family_of, family_with, known_family
from use_st5.own_data.columns import DEFINITIONS, TEXTS, TaskKind
from use_st5.own_data.settings import Settings
from use_st5.own_data.sources import Source
from use_st5.trainable_encoder import TrainableEncoder

FRESH = "fresh:"
# Of a vocabulary that is built from the files.
_UNIGRAMS, _BIGRAMS = 40_000, 40_000
# SimCSE's: without any the two views of a text are one.
_DROPOUT_OF_TEXTS = 0.1


def open_learner(
    model: str | os.PathLike[str] | TrainableEncoder, sources: Sequence[Source], settings: Settings
) -> TrainableEncoder:
    """The encoder that is to learn.

    Args:
        model: A bundled name, a folder, a checkpoint, `fresh:PRESET`, or an encoder.
        sources: What it will learn from.
        settings: How.

    Raises:
        FileNotFoundError: There is no such model.
        ValueError: It cannot learn this.
    """
    keras.utils.set_random_seed(settings.seed)
    kinds = [source.kind for source in sources]
    if isinstance(model, TrainableEncoder):
        encoder = model
    elif os.fspath(model).startswith(FRESH):
        encoder = _fresh(os.fspath(model).removeprefix(FRESH), sources)
    else:
        encoder = TrainableEncoder.load(model)
    known = family_of(encoder.model)
    if known.texts != 1:
        raise ValueError(
            f"{model}: expected an encoder of single texts, received a {known.name}, which "
            "compares two."
        )
    if DEFINITIONS in kinds and hasattr(encoder.model, "word_logits"):
        # The head reads the width of the states: as in the recipe `sbert_defsent`.
        encoder = _changed(encoder, {"dense": None, "normalize": False, "head": True})
    return _with_dropout(encoder, _dropout(encoder, kinds, settings))


def family_name(encoder: TrainableEncoder) -> str | None:
    """The family of an encoder, if it is known."""
    family = known_family(encoder.model)
    return None if family is None else family.name


def token_limit(encoder: TrainableEncoder, settings: Settings) -> int:
    """Tokens of a text that training reads."""
    usual = encoder.max_length or 128
    return min(settings.max_tokens or usual, encoder.max_length or settings.max_tokens or usual)


def _fresh(preset: str, sources: Sequence[Source]) -> TrainableEncoder:
    """A named shape with initial weights, and the vocabulary of the sources where it needs one."""
    family = family_with(preset)
    vectorizer = family.usual_vectorizer()
    if vectorizer is None:
        vectorizer = _counted(family.vectorizers, _texts(sources))
    return TrainableEncoder.fresh(preset, vectorizer)


def _counted(kinds: Mapping[str, Any], texts: Iterable[str]) -> Any:
    """A text stage whose vocabulary is counted in texts."""
    from use_st5.text.ngram_vectorizer import NGramVectorizer
    from use_st5.text.token_vectorizer import UnigramVectorizer
    from use_st5.text.vocabulary_builder import build_vocabulary

    grams = NGramVectorizer.kind in kinds
    vocabulary = build_vocabulary(
        texts, num_unigrams=_UNIGRAMS, num_bigrams=_BIGRAMS if grams else 0
    )
    return NGramVectorizer(vocabulary) if grams else UnigramVectorizer(vocabulary)


def _texts(sources: Sequence[Source]) -> Iterable[str]:
    for source in sources:
        for row in source:
            yield from (row[key] for key in source.kind.texts if key in row)


def _dropout(
    encoder: TrainableEncoder, kinds: Sequence[TaskKind], settings: Settings
) -> float | None:
    """The dropout to set; None: the model's own."""
    if settings.dropout is not None:
        return settings.dropout
    config = getattr(encoder.model, "config", None)
    own = getattr(config, "dropout", None)
    return _DROPOUT_OF_TEXTS if TEXTS in kinds and own == 0 else None


def _with_dropout(encoder: TrainableEncoder, rate: float | None) -> TrainableEncoder:
    if rate is None:
        return encoder
    config = family_of(encoder.model).config(encoder.model).get("config", {})
    if "dropout" not in config:
        raise ValueError(f"dropout: a {type(encoder.model).__name__} has no such setting.")
    return _changed(encoder, {"config": {**config, "dropout": rate}})


def copied(encoder: TrainableEncoder) -> TrainableEncoder:
    """An encoder of its own with the same weights, made in the scope that the caller is in.

    A SavedModel cannot be called in the scope of several replicas, so that what is loaded from one
    comes there as a copy.
    """
    copy = _changed(encoder, {})
    copy.model.set_weights(encoder.model.get_weights())
    return copy


def _changed(encoder: TrainableEncoder, changes: Mapping[str, Any]) -> TrainableEncoder:
    """The encoder with another configuration and, as far as it has them, its weights."""
    source = encoder.model
    family = family_of(source)
    model = family.restore({**family.config(source), **changes}, dtype=source.dtype_policy)
    theirs = {layer.name: layer for layer in source.layers}
    for layer in model.layers:
        if layer.name in theirs:
            layer.set_weights(theirs[layer.name].get_weights())
    head = getattr(model, "head", None)
    if head is not None and getattr(source, "head", None) is None:
        # As the recipe `sbert_defsent` begins: the head reads the vectors as they are.
        head.transform.kernel.assign(keras.ops.eye(model.config.hidden_dim))
    return TrainableEncoder(
        model,
        encoder.vectorizer,
        name=encoder.name,
        max_length=encoder.max_length,
        card=encoder.card,
        metadata=encoder.metadata,
    )
