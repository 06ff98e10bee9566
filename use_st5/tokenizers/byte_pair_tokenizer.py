"""Maps sentences to ids of byte pairs, as RoBERTa and ModernBERT do, inside the graph."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Self

import msgspec
import numpy as np
import tensorflow as tf

from use_st5._imports import require
from use_st5.io.records import Count, read_record
from use_st5.tokenizers.code_points import (
    CODE_POINTS,
    CodePointTable,
    categories,
    decode,
    in_ranges,
    spread,
)
from use_st5.tokenizers.framed_tokenizer import (
    FILE_LIMIT,
    AddedToken,
    AddedTokens,
    FramedTokenizer,
    SpecialTokens,
    read_lines,
    written_assets,
)
from use_st5.tokenizers.long_texts import as_utf8
from use_st5.tokenizers.tokenizer import HashedVocabulary

_SPACE, _LETTER, _NUMBER, _OTHER = range(4)
_OUTSIDE = -1  # before the first character of a text and after its last one

# Letters and numbers of Unicode 15 and 16, which Python 3.11 does not know.
_LETTERS = in_ranges(
    "1C89-1C8A A7CB-A7CD A7DA-A7DC 105C0-105F3 10D4A-10D65 10D6F-10D85 10EC2-10EC4 1123F-11240 "
    "11380-11389 1138B 1138E 11390-113B5 113B7 113D1 113D3 11BC0-11BE0 11F02 11F04-11F10 "
    "11F12-11F33 1342F 13441-13446 13460-143FA 16100-1611D 16D40-16D6C 18CFF 1B132 1B155 "
    "1DF25-1DF2A 1E030-1E06D 1E4D0-1E4EB 1E5D0-1E5ED 1E5F0 2B739 2EBF0-2EE5D 31350-323AF"
)
_NUMBERS = in_ranges(
    "10D40-10D49 116D0-116E3 11BF0-11BF9 11F50-11F59 16130-16139 16D70-16D79 1CCF0-1CCF9 "
    "1D2C0-1D2D3 1E4F0-1E4F9 1E5F1-1E5FA"
)
_WHITE_CONTROLS = in_ranges("9-D 85")


def byte_letters() -> list[str]:
    """The letter that stands for each byte in files; a printable byte stands for itself."""
    plain = {*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    other_bytes = (byte for byte in range(256) if byte not in plain)
    letters = {byte: chr(byte) for byte in plain}
    letters |= {byte: chr(256 + number) for number, byte in enumerate(other_bytes)}
    return [letters[byte] for byte in range(256)]


class ByteLevelWords:
    r"""Cuts texts into words, white space included; joined, the words are the texts again.

    The words are the matches of GPT-2's pattern, which RE2 cannot express:

        's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+

    A word is a run of letters, of numbers or of other characters, with the space before it; or a
    clitic after an apostrophe that begins a run; or white space. The last white-space character
    before another run is a word of its own, unless it is a space.
    """

    def __init__(self) -> None:
        kinds = np.full(CODE_POINTS, _OTHER, np.int32)
        for point, category in categories():
            kinds[point] = {"L": _LETTER, "N": _NUMBER, "Z": _SPACE}.get(category[0], _OTHER)
        kinds[_LETTERS], kinds[_NUMBERS], kinds[_WHITE_CONTROLS] = _LETTER, _NUMBER, _SPACE
        self._kinds = CodePointTable(kinds)

    def __call__(self, text: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """The words of all texts, string `[words]`, and their row splits, int32 `[batch + 1]`."""
        points, splits = decode(text)
        places = tf.range(tf.size(points, tf.int64))
        # The number of texts that begin at each code point: more than 1 if one is empty.
        firsts = tf.math.bincount(
            tf.cast(splits, tf.int32), minlength=tf.size(points) + 1, dtype=tf.int32
        )
        begins = self._begins(points, firsts[:-1] > 0, firsts[1:] > 0)
        starts = tf.boolean_mask(places, begins)
        words = tf.raw_ops.UnicodeEncode(
            input_values=points,
            input_splits=tf.concat([starts, [tf.size(points, tf.int64)]], axis=0),
            output_encoding="UTF-8",
        )
        before = tf.cumsum(tf.cast(begins, tf.int32))
        return words, tf.gather(tf.concat([[0], before], axis=0), splits)

    def _begins(self, points: tf.Tensor, first: tf.Tensor, last: tf.Tensor) -> tf.Tensor:
        """Whether a word begins at each code point; which are the first or last of a text."""
        kinds = self._kinds(points)
        before = tf.where(first, _OUTSIDE, tf.roll(kinds, 1, axis=0))
        behind = tf.where(last, _OUTSIDE, tf.roll(kinds, -1, axis=0))
        after_space = ~first & (tf.roll(points, 1, axis=0) == ord(" "))
        changes = kinds != before
        begins = tf.where(
            kinds == _SPACE,
            changes | ((behind != _SPACE) & (behind != _OUTSIDE)),
            changes & ~after_space,
        )
        # Clitics such as "'s" are words of their own. Two more places, which belong to no text, so
        # that two characters follow every quote.
        quotes = tf.where((points == ord("'")) & begins)[:, 0]
        points, first = tf.pad(points, [[0, 2]]), tf.pad(first, [[0, 2]], constant_values=True)
        one = tf.where(tf.gather(first, quotes + 1), 0, tf.gather(points, quotes + 1))
        two = tf.where(tf.gather(first, quotes + 2), 0, tf.gather(points, quotes + 2))
        short = _is_one_of(tf.stack([one], axis=1), "s", "t", "m", "d")
        long = _is_one_of(tf.stack([one, two], axis=1), "re", "ve", "ll")
        letters = tf.cast(short, tf.int64) + 2 * tf.cast(long, tf.int64)
        clitics = tf.where(letters)
        inside = tf.gather(quotes, clitics) + 1
        behind = inside + tf.gather(letters, clitics)
        begins = tf.pad(begins, [[0, 2]])
        begins = tf.tensor_scatter_nd_update(begins, inside, tf.zeros_like(inside[:, 0], tf.bool))
        begins = tf.tensor_scatter_nd_update(begins, behind, tf.ones_like(behind[:, 0], tf.bool))
        return begins[:-2]


def _is_one_of(points: tf.Tensor, *texts: str) -> tf.Tensor:
    """Whether each row of code points `[number, letters]` is one of the texts of that length."""
    matches = points[:, None] == [[*map(ord, text)] for text in texts]
    return tf.reduce_any(tf.reduce_all(matches, axis=2), axis=1)


ROBERTA_TOKENS = SpecialTokens(
    padding="<pad>", unknown="<unk>", start="<s>", separator="</s>", mask="<mask>", between=2
)
# Ids are below this number, so that two of them fit into one key of 64 bits.
_MOST_IDS = 2**24
_NO_RANK = 2**30
# Longer words are merged when they occur: the table of whole words takes a round for each letter of
# its longest word. RoBERTa's longest piece has 128.
_WHOLE_LETTERS = 128
_UNKNOWN = -1

_VOCABULARY_ASSET, _MERGES_ASSET = "vocab.json", "merges.txt"
_SETTINGS_ASSET = "byte_pair.json"
_REMEDY = "Give the vocab.json and the merges.txt of a RoBERTa."


class _Settings(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    special: SpecialTokens = ROBERTA_TOKENS
    added: list[AddedToken] = []
    compose: bool = False


class BytePairTokenizer(FramedTokenizer):
    """Maps sentences to the ids of their byte pairs, between two special tokens.

    The ids are those of Hugging Face's `RobertaTokenizerFast` (without `add_prefix_space`), or of
    ModernBERT's tokenizer, with one difference: padding has the id 0 here, and the piece that has
    the id 0 there has padding's. A special token that is spelled out in a text is read as ordinary
    characters.

    At first each byte of a word is one piece. Then the pair with the lowest rank in the merge list
    is merged, until no pair is in the list. All words of a batch that are not one piece as a whole
    are merged together, each distinct word once. A word takes as many rounds as it has different
    merges: a word of a megabyte takes some minutes.

    Args:
        pieces: Piece → id as in Hugging Face's `vocab.json`, where a byte is one letter.
        merges: Pairs of pieces in the order of merging, as in `merges.txt`.
        special: Names of the special tokens, which are among the pieces.
        added: Tokens that are looked for before texts are cut into words.
        compose: Whether texts are normalised (NFC) first, which needs tensorflow-text.
    """

    kind: ClassVar[str] = "byte_pair"
    keeps_spaces: ClassVar[bool] = True
    marks_second_text: ClassVar[bool] = False

    def __init__(
        self,
        pieces: Mapping[str, int],
        merges: Sequence[tuple[str, str]],
        *,
        special: SpecialTokens = ROBERTA_TOKENS,
        added: Sequence[AddedToken] = (),
        compose: bool = False,
    ) -> None:
        needed = {special.start, special.padding, special.separator, *byte_letters()}
        if missing := sorted(needed - pieces.keys()):
            raise ValueError(f"Expected the pieces {missing[:5]} in the vocabulary.")
        if not merges:
            raise ValueError("Expected merges of pieces, received none.")
        if len({*pieces.values()}) < len(pieces) or max(pieces.values()) >= _MOST_IDS:
            raise ValueError(f"Expected each piece to have an id of its own below {_MOST_IDS:,}.")
        contents = {
            _VOCABULARY_ASSET: json.dumps(dict(pieces), ensure_ascii=False),
            _MERGES_ASSET: "".join(f"{one} {two}\n" for one, two in merges),
        }
        settings = _Settings(special, [*added], compose)
        if settings != _Settings():
            contents[_SETTINGS_ASSET] = msgspec.json.encode(settings).decode()
        padding = pieces[special.padding]
        swaps = {0: padding, padding: 0}
        pieces = {piece: swaps.get(number, number) for piece, number in pieces.items()}
        super().__init__(
            start=pieces[special.start],
            separator=pieces[special.separator],
            unknown=None,
            between=special.between,
            mask=pieces.get(special.mask),
            padding=padding,
        )
        digest = hashlib.sha256("\0".join(contents.values()).encode())
        self.vocabulary = HashedVocabulary(
            size=max([*pieces.values(), *(each.id for each in added)]) + 1,
            sha256=digest.hexdigest(),
        )
        normal = _composed if compose else as_utf8
        if compose:
            require("tensorflow_text", "text")
        tokens = [dataclasses.replace(each, id=swaps.get(each.id, each.id)) for each in added]
        self._added = AddedTokens(tokens, normal) if compose or added else None
        self._words = ByteLevelWords()
        letters = byte_letters()
        self._bytes = tf.constant([pieces[letter] for letter in letters], tf.int32)
        ranks, merged_ids = _merge_table(pieces, merges)
        self._merged = tf.constant([*merged_ids, 0], tf.int32)
        self._last = len(merged_ids)
        self._ranks = _table([*ranks], [*ranks.values()], tf.int64, default=_NO_RANK)
        self._wholes = self._whole_words(pieces, letters)
        self._assets = written_assets(self, contents)

    @classmethod
    def from_assets(cls, folder: Path) -> Self:
        """Builds the tokenizer of an exported model from the files in its assets."""
        settings, path = _Settings(), folder / _SETTINGS_ASSET
        if path.is_file():
            settings = read_record(path, _Settings, remedy="Export the model again.")
        return cls(
            read_pieces(folder / _VOCABULARY_ASSET),
            read_merges(folder / _MERGES_ASSET),
            **msgspec.structs.asdict(settings),
        )

    def pieces(self, text: tf.Tensor) -> tf.RaggedTensor:
        """The ids of the texts without special tokens."""
        return self._added.pieces(text, self._ordinary) if self._added else self._ordinary(text)

    def _ordinary(self, text: tf.Tensor) -> tf.RaggedTensor:
        """The ids of normalised texts without added tokens."""
        words, splits = self._words(text)
        whole_ids = self._wholes.lookup(words)
        spelled = tf.where(whole_ids == _UNKNOWN)
        values, splits = tf.cond(
            tf.size(spelled) > 0,
            lambda: self._spelled_out(words, splits, whole_ids, spelled),
            lambda: (whole_ids, splits),
        )
        return tf.RaggedTensor.from_row_splits(values, tf.cast(splits, tf.int64), validate=False)

    def _spelled_out(
        self, words: tf.Tensor, splits: tf.Tensor, whole: tf.Tensor, spelled: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Ids and row splits of texts in which the `spelled` words have several pieces."""
        distinct, places = tf.unique(tf.gather_nd(words, spelled))
        ids, rows = self._merge(distinct)
        number = tf.size(distinct)
        sizes = tf.math.bincount(rows, minlength=number, dtype=tf.int32)
        firsts = tf.math.unsorted_segment_min(tf.range(tf.size(rows)), rows, number)
        # Where the ids of each word begin: one id in `whole`, or those of its pieces after `whole`.
        begins = tf.tensor_scatter_nd_update(
            tf.range(tf.size(whole)), spelled, tf.size(whole) + tf.gather(firsts, places)
        )
        lengths = tf.tensor_scatter_nd_update(
            tf.ones_like(whole), spelled, tf.gather(sizes, places)
        )
        owners, columns = spread(lengths)
        values = tf.gather(tf.concat([whole, ids], axis=0), tf.gather(begins, owners) + columns)
        ends = tf.concat([[0], tf.cumsum(lengths)], axis=0)
        return values, tf.gather(ends, splits)

    def _merge(self, words: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """The ids of words' pieces, and the word of each, int32 `[pieces]`; words in any order."""
        byte_values = tf.io.decode_raw(tf.strings.reduce_join(words), tf.uint8)
        ids = tf.gather(self._bytes, tf.cast(byte_values, tf.int32))
        rows = tf.repeat(tf.range(tf.size(words)), tf.strings.length(words))
        none = ids[:0]
        state = (ids, rows, self._ranks_of(ids, rows, tf.range(tf.size(ids))), none, none)
        shapes = (tf.TensorShape([None]),) * len(state)
        *_, ids, rows = tf.while_loop(
            lambda ids, *_: tf.size(ids) > 0, self._merge_once, state, shape_invariants=shapes
        )
        return ids, rows

    def _merge_once(
        self, ids: tf.Tensor, rows: tf.Tensor, ranks: tf.Tensor, *done: tf.Tensor
    ) -> tuple[tf.Tensor, ...]:
        """Merges the pair with the lowest rank in each word; words without any pair are `done`."""
        best_ranks = tf.gather(tf.math.segment_min(ranks, rows), rows)
        has_pair = best_ranks < _NO_RANK
        done = tuple(
            tf.concat([old, tf.boolean_mask(new, ~has_pair)], axis=0)
            for old, new in zip(done, (ids, rows), strict=True)
        )
        merges = _without_overlaps((ranks == best_ranks) & has_pair)
        ids = tf.where(merges, tf.gather(self._merged, tf.minimum(ranks, self._last)), ids)
        places = tf.where(has_pair & ~tf.pad(merges, [[1, 0]])[:-1])[:, 0]
        ids, rows, ranks, merges = (tf.gather(each, places) for each in (ids, rows, ranks, merges))
        stale = tf.where(merges | tf.pad(merges, [[0, 1]])[1:])
        new_ranks = self._ranks_of(ids, rows, tf.cast(stale[:, 0], tf.int32))
        return ids, rows, tf.tensor_scatter_nd_update(ranks, stale, new_ranks), *done

    def _ranks_of(self, ids: tf.Tensor, rows: tf.Tensor, places: tf.Tensor) -> tf.Tensor:
        """The ranks of the pairs that begin at the given places within a word, int32."""
        next_places = tf.minimum(places + 1, tf.size(ids) - 1)
        one, two = (tf.cast(tf.gather(ids, each), tf.int64) for each in (places, next_places))
        is_pair = (tf.gather(rows, places) == tf.gather(rows, next_places)) & (places < next_places)
        ranks = tf.cast(self._ranks.lookup(one * _MOST_IDS + two), tf.int32)
        return tf.where(is_pair, ranks, _NO_RANK)

    def _whole_words(
        self, pieces: Mapping[str, int], letters: Sequence[str]
    ) -> tf.lookup.StaticHashTable:
        """The table of the shorter words that are one piece: their bytes are all merged into it."""
        codes = {letter: byte for byte, letter in enumerate(letters)}
        words = [
            bytes(codes[each] for each in piece)
            for piece in pieces
            if 0 < len(piece) <= _WHOLE_LETTERS and codes.keys() >= set(piece)
        ]
        ids, rows = (each.numpy() for each in self._merge(tf.constant(words)))
        single = np.bincount(rows, minlength=len(words))[rows] == 1
        whole_words = [words[row] for row in rows[single]]
        return _table(whole_words, ids[single].tolist(), tf.int32, default=_UNKNOWN)


def read_pieces(path: Path) -> dict[str, int]:
    """The pieces of a `vocab.json` and their ids."""
    return read_record(path, dict[str, Count], remedy=_REMEDY, limit=FILE_LIMIT)


def read_merges(path: Path) -> list[tuple[str, str]]:
    """The pairs of a `merges.txt`, one a line."""
    merges = []
    for number, line in enumerate(read_lines(path, remedy=_REMEDY), 1):
        if line and not line.startswith("#version"):
            one, _, two = line.partition(" ")
            if not (one and two) or " " in two:
                raise ValueError(f"{path}:{number}: expected two pieces, received {line:.80}.")
            merges.append((one, two))
    return merges


def _composed(text: tf.Tensor) -> tf.Tensor:
    return require("tensorflow_text", "text").normalize_utf8(as_utf8(text), "NFC")


def _merge_table(
    pieces: Mapping[str, int], merges: Sequence[tuple[str, str]]
) -> tuple[dict[int, int], list[int]]:
    """The rank of each pair of ids, and the id that the pair of each rank is merged into."""
    ranks, merged_ids, letters = {}, [], frozenset(byte_letters())
    for rank, (one, two) in enumerate(merges):
        if not ({one, two, one + two} <= pieces.keys() and letters >= {*one, *two}):
            where = f"{one!r:.200} and {two!r:.200} (number {rank + 1:,})"
            raise ValueError(f"Expected a merge of pieces into a piece, received {where}.")
        # If a merge occurs several times, the last one counts, as in Hugging Face's tokenizers.
        ranks[pieces[one] * _MOST_IDS + pieces[two]] = rank
        merged_ids.append(pieces[one + two])
    return ranks, merged_ids


def _table(
    keys: Sequence[bytes | int], values: Sequence[int], dtype: tf.DType, *, default: int
) -> tf.lookup.StaticHashTable:
    kind = tf.string if dtype == tf.int32 else tf.int64
    initializer = tf.lookup.KeyValueTensorInitializer(
        tf.constant(keys, kind, shape=[len(keys)]), tf.constant(values, dtype, shape=[len(values)])
    )
    return tf.lookup.StaticHashTable(initializer, default)


def _without_overlaps(merged: tf.Tensor) -> tf.Tensor:
    """Keeps the first, third and so on of overlapping pairs, such as the two in "aaa"."""
    follows = merged & tf.pad(merged, [[1, 0]])[:-1]

    def apart() -> tf.Tensor:
        places = tf.range(tf.size(merged))
        run = tf.cumsum(tf.cast(~follows, tf.int32)) - 1
        return merged & ((places - tf.gather(tf.boolean_mask(places, ~follows), run)) % 2 == 0)

    return tf.cond(tf.reduce_any(follows), apart, lambda: merged)
