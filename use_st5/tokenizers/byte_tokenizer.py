"""Strings as numbers and back, for models that read strings themselves."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import ClassVar, Self

import tensorflow as tf

from use_st5.tokenizers.long_texts import as_utf8
from use_st5.tokenizers.ngram_tokenizer import check_max_tokens

# Bytes in an id.
_BYTES = 3
_RADIX = 256


@dataclasses.dataclass(frozen=True)
class ByteVocabulary:
    """All ids that three bytes can have."""

    size: int = _RADIX**_BYTES + 1


class ByteTokenizer(tf.Module):
    """Three bytes of UTF-8 make one id, so that the training pipeline carries texts as numbers.

    `strings` turns the ids into texts again, without the bytes that are 0.
    """

    kind: ClassVar[str] = "bytes"

    def __init__(self) -> None:
        super().__init__()
        self.vocabulary = ByteVocabulary()

    @classmethod
    def from_assets(cls, folder: Path) -> Self:
        """The tokenizer, which has no assets."""
        return cls()

    def padded(self, text: tf.Tensor, max_tokens: int | None = None) -> tf.Tensor:
        """Ids of string `[batch]`, int32 `[batch, length]`, 0 = padding; three bytes in each id."""
        check_max_tokens(max_tokens)
        text = as_utf8(text)
        counts = _counts(text)
        length = tf.reduce_max(tf.concat([counts, [1]], 0))
        raw = tf.io.decode_raw(text, tf.uint8, fixed_length=_BYTES * length)
        digits = tf.reshape(tf.cast(raw, tf.int32), [-1, length, _BYTES])
        ids = 1 + tf.reduce_sum(digits * [_RADIX**place for place in range(_BYTES)], axis=-1)
        ids = tf.where(tf.sequence_mask(counts, length), ids, 0)
        return ids if max_tokens is None else ids[:, :max_tokens]

    def token_ids(self, text: tf.Tensor, max_tokens: int) -> tf.Tensor:
        """The ids of `padded` in rows of one length, int32 `[batch, max_tokens]`."""
        ids = self.padded(text, max_tokens)
        return tf.pad(ids, [[0, 0], [0, max_tokens - tf.shape(ids)[1]]])

    def token_counts(self, text: tf.Tensor) -> tf.Tensor:
        """How many ids each text has, uncut: string `[batch]` → int32 `[batch]`, at least 1."""
        return _counts(as_utf8(text))

    @staticmethod
    def strings(ids: tf.Tensor) -> tf.Tensor:
        """The texts of ids: int32 `[batch, length]` → string `[batch]`.

        A character that was cut in two is left out.
        """
        values = tf.maximum(ids - 1, 0)[..., None]
        digits = values // [_RADIX**place for place in range(_BYTES)] % _RADIX
        table = tf.constant([b"", *(bytes([each]) for each in range(1, _RADIX))])
        rows = tf.reshape(tf.gather(table, digits), [tf.shape(ids)[0], -1])
        text = tf.strings.reduce_join(rows, axis=1)
        return tf.strings.unicode_transcode(text, "UTF-8", "UTF-8", errors="ignore")


def _counts(text: tf.Tensor) -> tf.Tensor:
    return tf.maximum((tf.strings.length(text) + _BYTES - 1) // _BYTES, 1)
