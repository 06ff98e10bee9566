"""Tokenizers that frame each text with special tokens, and find tokens that were added."""

from __future__ import annotations

import abc
import dataclasses
import re
import shutil
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np
import tensorflow as tf

from use_st5.io.records import read_bounded
from use_st5.tokenizers.long_texts import as_utf8, beginnings, summed
from use_st5.tokenizers.tokenizer import Vocabulary

# The most bytes of a tokenizer's file: sixty times the size of RoBERTa's, four times that of mT5's.
FILE_LIMIT = 2**26


def read_lines(path: Path, *, remedy: str) -> list[str]:
    """The lines of a file in UTF-8; the last one is empty if the file ends with a line break."""
    content = read_bounded(path, limit=FILE_LIMIT, remedy=remedy)
    try:
        return content.decode().replace("\r\n", "\n").split("\n")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: expected UTF-8, received other bytes. {remedy}") from error


@dataclasses.dataclass(frozen=True)
class SpecialTokens:
    """The names of a vocabulary's special tokens; the defaults are BERT's.

    Attributes:
        padding: Fills the rows of a batch.
        unknown: Stands for what the vocabulary cannot spell.
        start: Before a text.
        separator: After a text.
        mask: Stands for a hidden word; a vocabulary may lack it.
        between: Separators between the two texts of a pair.
    """

    padding: str = "[PAD]"
    unknown: str = "[UNK]"
    start: str = "[CLS]"
    separator: str = "[SEP]"
    mask: str = "[MASK]"
    between: int = 1


def written_assets(
    owner: tf.Module, contents: Mapping[str, str | bytes]
) -> list[tf.saved_model.Asset]:
    """Writes files of a tokenizer as assets, which live as long as their owner."""
    folder = Path(tempfile.mkdtemp(prefix="use_st5_"))
    weakref.finalize(owner, shutil.rmtree, folder, ignore_errors=True)
    for name, content in contents.items():
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return [tf.saved_model.Asset(str(folder / name)) for name in contents]


class FramedTokenizer(tf.Module, abc.ABC):
    """Maps texts, and pairs of texts, to the ids of their pieces between special tokens.

    A text is `start … separator`, a pair `start A separator B separator`; RoBERTa has two
    separators in the middle. A text that is too long is cut before the special tokens are added.
    No text contains a special token: one that is spelled out, such as "[SEP]", is read as the
    characters that it is made of.

    Memory: a long text (`use_st5.tokenizers.long_texts`) is tokenized a block at a time, or only as
    far as `max_tokens` need it, if it has single spaces between ASCII characters.

    Attributes:
        vocabulary: Identifies the ids of this tokenizer.
        separator: The id after a text.
        between: Separators between the two texts of a pair.
        mask: The id that stands for a hidden word; None if the vocabulary has none.
        unknown_id: The id of what cannot be spelled; None if everything can.
        padding_id: The id of padding in the files of the vocabulary; here padding has the id 0.
    """

    vocabulary: Vocabulary

    # Whether a piece may begin with the space before it; if not, a space only separates.
    keeps_spaces: ClassVar[bool]
    # Whether a model with two token types marks the second text of a pair with the second type.
    marks_second_text: ClassVar[bool] = True

    def __init__(
        self,
        *,
        start: int,
        separator: int,
        unknown: int | None,
        between: int,
        mask: int | None,
        padding: int = 0,
    ) -> None:
        super().__init__()
        self.separator = separator
        self.between = between
        self.mask = mask
        self.padding_id = padding
        self._start = start
        self.unknown_id = unknown

    @abc.abstractmethod
    def pieces(self, text: tf.Tensor) -> tf.RaggedTensor:
        """The ids of string `[batch]` without special tokens, int32 `[batch, (pieces)]`."""

    def padded(self, text: tf.Tensor, max_tokens: int | None = None) -> tf.Tensor:
        """Returns rows as long as the longest one; `max_tokens` includes the special tokens."""
        room = _room(max_tokens, special=2, texts=1)
        pieces = self._beginnings(text, room)
        rows = pieces.to_tensor()
        lengths = tf.cast(pieces.row_lengths(), tf.int32)
        if room is not None:
            rows, lengths = rows[:, :room], tf.minimum(lengths, room)
        # Fewer operations than a concatenation of ragged tensors, which would slow one sentence.
        rows = tf.pad(rows, [[0, 0], [1, 1]])
        columns = tf.range(tf.shape(rows)[1])
        rows = tf.where(columns == lengths[:, None] + 1, self.separator, rows)
        return tf.where(columns == 0, self._start, rows)

    def padded_pairs(
        self, first: tf.Tensor, second: tf.Tensor, max_tokens: int | None = None
    ) -> tf.Tensor:
        """Returns rows as long as the longest one; the longer text of a long pair is cut."""
        room = _room(max_tokens, special=2 + self.between, texts=2)
        # Even if both texts are too long, the result depends on which one is longer.
        one, two = self._beginnings(first, room), self._beginnings(second, room)
        if room is not None:
            lengths = _longest_first(one.row_lengths(), two.row_lengths(), room)
            one, two = (_cut(*each) for each in zip((one, two), lengths, strict=True))
        start, end = self._column(one, [self._start]), self._column(one, [self.separator])
        between = self._column(one, [self.separator] * self.between)
        return tf.concat([start, one, between, two, end], axis=1).to_tensor()

    def token_ids(self, text: tf.Tensor, max_tokens: int) -> tf.Tensor:
        """The ids of `padded` in rows of one length."""
        ids = self.padded(text, max_tokens)
        return tf.pad(ids, [[0, 0], [0, max_tokens - tf.shape(ids)[1]]])

    def token_counts(self, text: tf.Tensor) -> tf.Tensor:
        """The number of ids of each uncut text, with the special tokens."""

        def number(text: tf.Tensor) -> tf.Tensor:
            return tf.cast(self.pieces(text).row_lengths(), tf.int32)

        zeros = tf.zeros([tf.shape(text)[0]], tf.int32)
        return summed(text, number, zeros, keep_spaces=self.keeps_spaces) + 2

    def pair_token_counts(self, first: tf.Tensor, second: tf.Tensor) -> tf.Tensor:
        """The number of ids of each uncut pair of texts, with the special tokens."""
        # Each of the two counts includes a start and a separator.
        return self.token_counts(first) + self.token_counts(second) + self.between - 2

    def single_ids(self, words: Sequence[str]) -> np.ndarray:
        """The id of each word that is exactly one piece of the vocabulary, 0 for every other."""
        pieces = self.pieces(tf.constant([*words], tf.string))
        single = pieces.row_lengths() == 1
        ids = _cut(pieces, tf.ones_like(pieces.row_lengths())).to_tensor(shape=[None, 1])[:, 0]
        is_known = single if self.unknown_id is None else single & (ids != self.unknown_id)
        return tf.where(is_known, ids, 0).numpy()

    def _beginnings(self, text: tf.Tensor, room: int | None) -> tf.RaggedTensor:
        """The pieces of each text; of long texts at least the first `room` pieces."""
        return self.pieces(text if room is None else beginnings(text, room))

    def _column(self, pieces: tf.RaggedTensor, ids: list[int]) -> tf.Tensor:
        """The same ids for each row."""
        return tf.tile(tf.constant([ids], tf.int32), [pieces.nrows(out_type=tf.int32), 1])


def _room(max_tokens: int | None, *, special: int, texts: int) -> int | None:
    """The number of pieces that fit together with the special tokens; None without a limit."""
    if max_tokens is not None and max_tokens < special + texts:
        raise ValueError(f"Expected max_tokens >= {special + texts}, received {max_tokens}.")
    return None if max_tokens is None else max_tokens - special


def _longest_first(one: tf.Tensor, two: tf.Tensor, room: int) -> tuple[tf.Tensor, tf.Tensor]:
    """The two lengths after the longer one is cut first, as Hugging Face's tokenizers do."""
    half = tf.constant(room // 2, one.dtype)
    short, long = tf.minimum(one, two), tf.maximum(one, two)
    both = 2 * short > room
    left = tf.where(both, half, short)
    rest = tf.where(both, room - half, tf.minimum(long, room - left))
    return tf.where(one > two, rest, left), tf.where(one > two, left, rest)


def _cut(pieces: tf.RaggedTensor, lengths: tf.Tensor) -> tf.RaggedTensor:
    """The first pieces of each row, up to the row's length in `lengths`."""
    columns = tf.range(tf.size(pieces.values, tf.int64)) - tf.gather(
        pieces.row_starts(), pieces.value_rowids()
    )
    mask = columns < tf.gather(lengths, pieces.value_rowids())
    return tf.ragged.boolean_mask(pieces, pieces.with_values(mask))


_CUT = b"\xff"  # never occurs in UTF-8
# The most bytes of all tokens: with more, RE2 has no memory for its automaton, prints a message for
# each text, and takes seconds. ModernBERT's 83 tokens have about 1,200.
_MOST_BYTES = 2**14


@dataclasses.dataclass(frozen=True)
class AddedToken:
    """A token that the model in a `tokenizer.json` lacks; `normalized`: in normalised texts."""

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
        """The ids of texts; `ordinary` gives those of normalised texts without added tokens."""

        def normalised(text: tf.Tensor) -> tf.RaggedTensor:
            text = self._normal(text)
            return self._rest.pieces(text, ordinary) if self._rest else ordinary(text)

        return self._raw.pieces(as_utf8(text), normalised) if self._raw else normalised(text)


class _Finder(tf.Module):
    """Finds tokens anywhere in texts, where they are written as `contents` in UTF-8."""

    def __init__(self, contents: Sequence[bytes], tokens: Sequence[AddedToken]) -> None:
        super().__init__()
        size = sum(map(len, contents))
        if b"" in contents or len({*contents}) < len(contents) or size > _MOST_BYTES:
            what = f"up to {_MOST_BYTES:,} bytes, each once and none empty"
            raise ValueError(f"Expected added tokens of {what}: {size:,} bytes {contents!r:.200}.")
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
