"""Finds the tokens that were added to a vocabulary before texts are cut into words."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Sequence

import tensorflow as tf

from use_st5.tokenizers.long_texts import as_utf8

_CUT = b"\xff"  # never occurs in UTF-8
# The most bytes of all tokens: with more, RE2 has no memory for its automaton, prints a message for
# each text, and takes seconds. ModernBERT's 83 tokens have about 1,200.
_MOST_BYTES = 2**14


@dataclasses.dataclass(frozen=True)
class AddedToken:
    """A token of a `tokenizer.json` that its model does not know.

    Attributes:
        content: The token as it is written in a text.
        id: Its id.
        normalized: Whether the token is normalised, and looked for in normalised texts.
    """

    content: str
    id: int
    normalized: bool = True


class AddedTokens(tf.Module):
    """Finds added tokens in texts, the longest first, and normalises what is between them.

    Like Hugging Face's tokenizers, it first looks in the unchanged texts for the tokens that are
    not `normalized`, then in the normalised texts for the others.

    Args:
        tokens: The added tokens; there may be none.
        normal: Normalises texts, string `[batch]` → string `[batch]`, UTF-8.

    Raises:
        ValueError: A token is empty or occurs twice, or the tokens are too long in all.
    """

    def __init__(
        self, tokens: Sequence[AddedToken], normal: Callable[[tf.Tensor], tf.Tensor]
    ) -> None:
        super().__init__()  # a SavedModel tracks the tables
        self._normal = normal
        raw = [each for each in tokens if not each.normalized]
        rest = [each for each in tokens if each.normalized]
        self._raw = _Finder([each.content.encode() for each in raw], raw) if raw else None
        self._rest = None
        if rest:
            contents = normal(tf.constant([each.content for each in rest])).numpy().tolist()
            self._rest = _Finder(contents, rest)

    def pieces(
        self, text: tf.Tensor, ordinary: Callable[[tf.Tensor], tf.RaggedTensor]
    ) -> tf.RaggedTensor:
        """The ids of texts.

        Args:
            text: string `[batch]`.
            ordinary: The ids of normalised texts without added tokens, string `[parts]` → int32
                `[parts, (pieces)]`.

        Returns:
            int32 `[batch, (pieces)]`.
        """

        def normalised(text: tf.Tensor) -> tf.RaggedTensor:
            text = self._normal(text)
            return self._rest.pieces(text, ordinary) if self._rest else ordinary(text)

        return self._raw.pieces(as_utf8(text), normalised) if self._raw else normalised(text)


class _Finder(tf.Module):
    """Finds tokens anywhere in texts.

    Args:
        contents: The tokens as they are written in the texts, UTF-8.
        tokens: The tokens.
    """

    def __init__(self, contents: Sequence[bytes], tokens: Sequence[AddedToken]) -> None:
        super().__init__()
        if b"" in contents or len({*contents}) < len(contents):
            raise ValueError(f"Expected added tokens, each once and none empty: {contents!r:.200}.")
        if (size := sum(map(len, contents))) > _MOST_BYTES:
            raise ValueError(
                f"Expected added tokens of {_MOST_BYTES:,} bytes in all, received "
                f"{len(contents):,} tokens of {size:,} bytes. Remove the unused ones."
            )
        ordered = sorted(contents, key=len, reverse=True)
        self._pattern = b"(" + b"|".join(map(re.escape, ordered)) + b")"
        initializer = tf.lookup.KeyValueTensorInitializer(
            tf.constant([*contents], tf.string), tf.constant([each.id for each in tokens], tf.int32)
        )
        self._table = tf.lookup.StaticHashTable(initializer, -1)

    def pieces(
        self, text: tf.Tensor, ordinary: Callable[[tf.Tensor], tf.RaggedTensor]
    ) -> tf.RaggedTensor:
        """The ids of UTF-8 texts, as in `AddedTokens.pieces`."""
        marked = tf.strings.regex_replace(text, self._pattern, _CUT + rb"\1" + _CUT)
        positions, parts, shape = tf.raw_ops.StringSplitV2(input=marked, sep=_CUT)
        added = positions[:, 1] % 2 == 1
        ordinary_ids = ordinary(tf.where(added, "", parts))
        added_ids = tf.RaggedTensor.from_row_lengths(
            self._table.lookup(tf.boolean_mask(parts, added)), tf.cast(added, tf.int64)
        )
        ids = tf.concat([ordinary_ids.with_row_splits_dtype(tf.int64), added_ids], axis=1)
        part_counts = tf.math.bincount(
            tf.cast(positions[:, 0], tf.int32), minlength=tf.cast(shape[0], tf.int32)
        )
        firsts = tf.concat([[0], tf.cumsum(part_counts)], axis=0)
        return tf.RaggedTensor.from_row_splits(ids.values, tf.gather(ids.row_splits, firsts))
