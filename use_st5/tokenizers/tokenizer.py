"""The contract of every tokenizer: strings to ids; and ids in rows of a few lengths."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self, runtime_checkable

import tensorflow as tf


class Vocabulary(Protocol):
    """Identifies the ids of a tokenizer: equal for tokenizers with equal ids.

    It is a dataclass: prepared data store its fields, which say what ids they hold.
    """

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def size(self) -> int:
        """The largest id, plus 1: the rows that a table of embeddings needs."""
        ...


@dataclasses.dataclass(frozen=True)
class HashedVocabulary:
    """A vocabulary that the hash of its files (pieces, ids and settings) identifies."""

    size: int
    sha256: str


@runtime_checkable
class Tokenizer(Protocol):
    """Strings to ids, inside the TensorFlow graph.

    Every tokenizer of use_st5 satisfies this protocol, and users can write their own. A tokenizer
    is trackable (a `tf.Module`): a SavedModel whose root holds it contains its tables and its
    assets, from which `from_assets` builds it again.

    Ids are at least 1, 0 is padding. Each text has at least one id, an empty one too. Neither the
    other texts of a batch nor their order changes a text's ids. Invalid UTF-8 is read as U+FFFD.

    Attributes:
        kind: Its name in `use_st5.json`.
        vocabulary: Identifies the ids that it gives.
    """

    kind: ClassVar[str]
    vocabulary: Vocabulary

    def padded(self, text: tf.Tensor, max_tokens: int | None = None) -> tf.Tensor:
        """The ids that an encoder reads, one row a text, padded with 0.

        Args:
            text: string `[batch]`.
            max_tokens: The number of tokens to keep of each text; None keeps all.

        Returns:
            int32 `[batch, length]`.
        """
        ...

    def token_ids(self, text: tf.Tensor, max_tokens: int) -> tf.Tensor:
        """The ids of the tokens in rows of one length (training arrays, decoders' targets).

        Args:
            text: string `[batch]`.
            max_tokens: The number of tokens to keep of each text.

        Returns:
            int32 `[batch, max_tokens]`.
        """
        ...

    def token_counts(self, text: tf.Tensor) -> tf.Tensor:
        """The number of tokens of each uncut text.

        Args:
            text: string `[batch]`.

        Returns:
            int32 `[batch]`, at least 1.
        """
        ...

    @classmethod
    def from_assets(cls, folder: Path) -> Self:
        """Builds the tokenizer of an exported model.

        Args:
            folder: The `assets` folder of its SavedModel.
        """
        ...


@runtime_checkable
class PairTokenizer(Tokenizer, Protocol):
    """A tokenizer that can also put two texts into one row of ids, for encoders that compare."""

    def padded_pairs(
        self, first: tf.Tensor, second: tf.Tensor, max_tokens: int | None = None
    ) -> tf.Tensor:
        """The ids of each pair of texts in a row, padded with 0: int32 `[batch, length]`."""
        ...

    def pair_token_counts(self, first: tf.Tensor, second: tf.Tensor) -> tf.Tensor:
        """The number of ids of each uncut pair, int32 `[batch]`."""
        ...


# Lengths for compilers that make a program for each shape.
BUCKETS = (16, 32, 64, 128)


def pad_to_bucket(ids: tf.Tensor, buckets: Sequence[int] = BUCKETS) -> tf.Tensor:
    """Pads or trims a batch of ids to the smallest of a few lengths that holds its longest row.

    XLA, and so a TPU, compiles one program for each shape. With this function, batches of one size
    need no more programs than there are buckets. It works on tensors and arrays, and inside
    `tf.data` pipelines. If texts are sorted by length before they are batched, they need little
    padding.

    Args:
        ids: int32 `[batch, length]`, padded with 0 on the right by any amount.
        buckets: Lengths, ascending.

    Returns:
        int32 `[batch, bucket]`.

    Raises:
        tf.errors.InvalidArgumentError: A row is longer than the last bucket; nothing is cut here.

    Examples:
        >>> encode = tf.function(model, jit_compile=True)
        >>> encode(pad_to_bucket(tokenizer.padded(texts, 128)))
    """
    ids = tf.convert_to_tensor(ids)
    positions = tf.range(1, tf.shape(ids)[1] + 1)
    longest = tf.maximum(tf.reduce_max(tf.where(ids != 0, positions, 0)), 0)  # 0 if no row
    tf.debugging.assert_less_equal(
        longest,
        buckets[-1],
        message=f"Expected rows of at most {buckets[-1]} ids (the last bucket): cut them first, "
        f"padded(text, {buckets[-1]}), or give a larger bucket.",
    )
    # In a graph this may run before the check above, and there is no bucket after the last one.
    longest = tf.minimum(longest, buckets[-1])
    width = tf.gather(list(buckets), tf.searchsorted(list(buckets), [longest])[0])
    ids = ids[:, :width]
    return tf.pad(ids, [[0, 0], [0, width - tf.shape(ids)[1]]])
