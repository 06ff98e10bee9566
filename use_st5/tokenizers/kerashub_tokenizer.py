"""Sentences to the ids of KerasHub's tokenizers, inside the graph."""

from __future__ import annotations

import hashlib
import json
import tempfile
from pathlib import Path
from typing import Any, ClassVar, Self

import msgspec
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


class _Settings(msgspec.Struct, forbid_unknown_fields=True):
    preprocessor: str
    tokenizer: str
    options: dict[str, Any]
    tokenizer_options: dict[str, Any]


class KerasHubTokenizer(tf.Module):
    """Maps sentences to the ids that a preprocessor of KerasHub gives, each plus 1.

    0 is padding; KerasHub has other ids for it.

    Args:
        preprocessor: A `keras_hub.models.TextEmbedderPreprocessor`.

    Attributes:
        padding: KerasHub's id of padding.

    Raises:
        ImportError: keras-hub is missing.
    """

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
        settings = read_record(folder / _SETTINGS_ASSET, _Settings, remedy=_REMEDY)
        tokenizer = kerashub_class(settings.tokenizer, "Tokenizer", folder).from_config(
            settings.tokenizer_options
        )
        tokenizer.load_assets(str(folder))
        kind = kerashub_class(settings.preprocessor, "TextEmbedderPreprocessor", folder)
        return cls(kind(tokenizer, **settings.options))

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


def kerashub_class(name: str, base: str, where: Any) -> Any:
    """A class of `keras_hub.models` by its name.

    Args:
        name: Its name.
        base: The name of the class that it must derive from.
        where: The file or folder that names the class, for error messages.

    Raises:
        ImportError: keras-hub is missing.
        ValueError: There is no such class.
    """
    models = require("keras_hub", "kerashub").models
    hub_class = getattr(models, name, None)
    if not (isinstance(hub_class, type) and issubclass(hub_class, getattr(models, base))):
        raise ValueError(
            f"{where}: expected the name of a {base} of keras_hub.models, found {name!r}. Update "
            "keras-hub or export the model again."
        )
    return hub_class


def _files(preprocessor: Any) -> dict[str, bytes]:
    """The files that `from_assets` reads, by name."""
    tokenizer = preprocessor.tokenizer
    settings = _Settings(
        type(preprocessor).__name__,
        type(tokenizer).__name__,
        {"sequence_length": preprocessor.sequence_length, "truncate": preprocessor.truncate},
        {key: value for key, value in tokenizer.get_config().items() if key not in _NOT_KEPT},
    )
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.save_assets(folder)
        files = {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir())}
    return {**files, _SETTINGS_ASSET: json.dumps(msgspec.to_builtins(settings)).encode()}
