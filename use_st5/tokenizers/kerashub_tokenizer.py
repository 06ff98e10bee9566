"""Sentences to the ids of KerasHub's tokenizers, inside the graph."""

from __future__ import annotations

import hashlib
import json
import tempfile
from pathlib import Path
from typing import Any, ClassVar, Self

import tensorflow as tf

from use_st5._imports import require
from use_st5.io.records import read_record
from use_st5.tokenizers.framed_tokenizer import written_assets
from use_st5.tokenizers.long_texts import as_utf8
from use_st5.tokenizers.tokenizer import HashedVocabulary

_SETTINGS_ASSET = "kerashub_tokenizer.json"
_REMEDY = "Export the model again."
# Settings of every Keras layer, and those that the tokenizer's files hold.
_NOT_KEPT = ("name", "trainable", "dtype", "vocabulary", "merges", "proto")


class KerasHubTokenizer(tf.Module):
    """Maps sentences to the ids of a `TextEmbedderPreprocessor` of KerasHub, each plus 1."""

    kind: ClassVar[str] = "kerashub"

    def __init__(self, preprocessor: Any) -> None:
        super().__init__()
        self._preprocessor = preprocessor
        tokenizer = preprocessor.tokenizer
        self.padding: int = tokenizer.pad_token_id
        self._default_length: int = preprocessor.sequence_length
        contents = _files(preprocessor)
        digest = hashlib.sha256(b"\0".join(contents.values())).hexdigest()
        self.vocabulary = HashedVocabulary(tokenizer.vocabulary_size() + 1, digest)
        self._assets = written_assets(self, contents)
        # Inside a graph KerasHub's layers compute with TensorFlow, outside maybe not. If the
        # functions themselves were attributes, a SavedModel would hold all their traces.
        rows = tf.function(self._packed, autograph=False)
        pieces = tf.function(lambda text: tokenizer(as_utf8(text)), autograph=False)
        self._rows = lambda text, length: rows(text, length)
        self._pieces = lambda text: pieces(text)
        self._special = int(tf.math.count_nonzero(self._rows(tf.constant([""]), 8)))

    @classmethod
    def from_assets(cls, folder: Path) -> Self:
        """Builds the tokenizer of an exported model from the files in its assets."""
        path = folder / _SETTINGS_ASSET
        settings = read_record(path, dict[str, Any], remedy=_REMEDY)
        tokenizer_class, preprocessor_class = (
            kerashub_class(settings.get(name), base, folder)
            for name, base in (
                ("tokenizer", "Tokenizer"),
                ("preprocessor", "TextEmbedderPreprocessor"),
            )
        )
        tokenizer = tokenizer_class.from_config(settings["tokenizer_options"])
        tokenizer.load_assets(str(folder))
        return cls(preprocessor_class(tokenizer, **settings["options"]))

    def padded(self, text: tf.Tensor, max_tokens: int | None = None) -> tf.Tensor:
        """Returns rows as long as the longest; the default limit is the preprocessor's."""
        rows = self._rows(tf.convert_to_tensor(text, tf.string), max_tokens or self._default_length)
        columns = tf.range(1, tf.shape(rows)[1] + 1)
        return rows[:, : tf.maximum(1, tf.reduce_max(tf.where(rows > 0, columns, 0)))]

    def token_ids(self, text: tf.Tensor, max_tokens: int) -> tf.Tensor:
        """The ids of each text in rows of one length."""
        return self._rows(tf.convert_to_tensor(text, tf.string), max_tokens)

    def token_counts(self, text: tf.Tensor) -> tf.Tensor:
        """The number of ids of each uncut text, at least 1."""
        pieces = self._pieces(tf.convert_to_tensor(text, tf.string))
        return tf.maximum(tf.cast(pieces.row_lengths(), tf.int32) + self._special, 1)

    def _packed(self, text: tf.Tensor, length: int) -> tf.Tensor:
        """The ids, int32 `[batch, length]`."""
        self._preprocessor.sequence_length = length
        features = self._preprocessor(as_utf8(text))
        ids, mask = (tf.cast(features[name], tf.int32) for name in ("token_ids", "padding_mask"))
        return tf.ensure_shape((ids + 1) * mask, [None, length])


def kerashub_class(name: Any, base: str, where: Any) -> Any:
    """A class of `keras_hub.models` by its name, which must derive from the class `base`."""
    models = require("keras_hub", "kerashub").models
    hub_class = getattr(models, str(name), None)
    if not (isinstance(hub_class, type) and issubclass(hub_class, getattr(models, base))):
        raise ValueError(f"{where}: {name!r:.80} is no {base} of keras_hub.models. Update it.")
    return hub_class


def _files(preprocessor: Any) -> dict[str, bytes]:
    """The files that `from_assets` reads, by name."""
    tokenizer = preprocessor.tokenizer
    length, truncate = preprocessor.sequence_length, preprocessor.truncate
    config = tokenizer.get_config()
    settings = {
        "preprocessor": type(preprocessor).__name__,
        "tokenizer": type(tokenizer).__name__,
        "options": {"sequence_length": length, "truncate": truncate},
        "tokenizer_options": {key: config[key] for key in config if key not in _NOT_KEPT},
    }
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.save_assets(folder)
        files = {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir())}
    return {**files, _SETTINGS_ASSET: json.dumps(settings).encode()}
