"""Sentences to the ids of BERT's word pieces, inside the TensorFlow graph."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Self

import msgspec
import tensorflow as tf

from use_st5._imports import require
from use_st5.io.records import read_record
from use_st5.tokenizers.code_points import CodePointRewriter, categories, in_ranges
from use_st5.tokenizers.framed_tokenizer import (
    AddedToken,
    AddedTokens,
    FramedTokenizer,
    SpecialTokens,
    read_lines,
    written_assets,
)
from use_st5.tokenizers.ngram_vocabulary import PIECE_MARK

# A word with more letters is unknown as a whole.
_MOST_LETTERS = 100

_VOCABULARY_ASSET, _SETTINGS_ASSET = "vocab.txt", "wordpiece.json"

# The marks, format characters and punctuation that differ between later tables of categories and
# those of Unicode 8, which Hugging Face's tokenizers use.
_NO_MARKS = in_ranges(
    "7FD 898-89F 8CA-8E1 9FE AFA-AFF B55 C04 C3C D00 D3B-D3C D81 EBA 180F 1885-1886 1ABF-1ACE "
    "1DF6-1DFB A82C A8C5 A8FF A9BD 10D24-10D27 10EAB-10EAC 10F46-10F50 10F82-10F85 11070 "
    "11073-11074 110C2 111C9 111CF 1123E 1133B 11438-1143F 11442-11444 11446 1145E 1182F-11837 "
    "11839-1183A 1193B-1193C 1193E 11943 119D4-119D7 119DA-119DB 119E0 11A01-11A0A 11A33-11A38 "
    "11A3B-11A3E 11A47 11A51-11A56 11A59-11A5B 11A8A-11A96 11A98-11A99 11C30-11C36 11C38-11C3D "
    "11C3F 11C92-11CA7 11CAA-11CB0 11CB2-11CB3 11CB5-11CB6 11D31-11D36 11D3A 11D3C-11D3D "
    "11D3F-11D45 11D47 11D90-11D91 11D95 11D97 11EF3-11EF4 16F4F 16FE4 1CF00-1CF2D 1CF30-1CF46 "
    "1E000-1E006 1E008-1E018 1E01B-1E021 1E023-1E024 1E026-1E02A 1E130-1E136 1E2AE 1E2EC-1E2EF "
    "1E944-1E94A ECE 10EFD-10EFF 11241 11F00-11F01 11F36-11F3A 11F40 11F42 13440 13447-13455 "
    "1E08F 1E4EC-1E4EF"
)
_NO_FORMAT = in_ranges("890-891 8E2 110CD 13430-1343F")
_NO_PUNCTUATION = in_ranges(
    "61D 9FD A76 C77 C84 1B7D-1B7E 2E43-2E4F 2E52-2E5D 10EAD 10F55-10F59 10F86-10F89 1144B-1144F "
    "1145A-1145B 1145D 11660-1166C 116B9 1183B 11944-11946 119E2 11A3F-11A46 11A9A-11A9C "
    "11A9E-11AA2 11C41-11C45 11C70-11C71 11EF7-11EF8 11FFF 12FF1-12FF2 16E97-16E9A 16FE2 "
    "1E95E-1E95F 1B4E-1B4F 1B7F 10D6E 113D4-113D5 113D7-113D8 11B00-11B09 11BE1 11F43-11F4F "
    "16D6D-16D6F 1E5FF"
)
_MARK, _PUNCTUATION = [0x1734], [0x166D, 0x111C9]
_NOT_DECOMPOSED = 0x11938

# The characters that tensorflow-text takes for Chinese: each is a word. Hugging Face's tokenizers
# have a typing error of the original BERT; without it, their last range would begin at 2B820.
_CHINESE = in_ranges("3400-4DBF 4E00-9FFF F900-FAFF 20000-2A6DF 2A700-2CEAF 2F800-2FA1F")
_NOT_CHINESE = in_ranges("2B820-2B91F")
# Characters of private use, which no normalised text contains.
_STAND_INS = range(0xF0000, 0x10FFFE)


@dataclasses.dataclass(frozen=True)
class WordPieceVocabulary:
    """Identifies a vocabulary by the largest id plus 1, its words' hash, and its settings."""

    size: int
    sha256: str
    lower_case: bool
    strip_accents: bool
    split_chinese: bool


BERT_TOKENS = SpecialTokens()


class _Settings(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    lower_case: bool
    strip_accents: bool
    split_chinese: bool
    special: SpecialTokens = BERT_TOKENS
    added: list[AddedToken] = []


class WordPieceTokenizer(FramedTokenizer):
    """Maps sentences to the ids of their word pieces, between `[CLS]` and `[SEP]`.

    The ids are those of Hugging Face's `BertTokenizerFast`, with one exception: a special token
    that is spelled out in a text is read as ordinary characters. (tensorflow-text's
    `FastWordpieceTokenizer` is used. Its `FastBertNormalizer` is not: like NFKC, it turns "½" and
    "…" into several characters.)

    Args:
        words: The vocabulary in the order of the ids, from 0, as in the lines of `vocab.txt`. If
            the first word is not the padding, the two change places.
        lower_case: Whether capitals are read as small letters (the "uncased" models).
        strip_accents: Whether letters are read without their marks; None means as `lower_case`.
        split_chinese: Whether each Chinese character is a word.
        special: Names of the special tokens.
        added: Tokens that are looked for before texts are cut into words; their ids are those of
            words, or follow them.
    """

    kind: ClassVar[str] = "wordpiece"
    keeps_spaces: ClassVar[bool] = False

    def __init__(
        self,
        words: Sequence[str],
        *,
        lower_case: bool = True,
        strip_accents: bool | None = None,
        split_chinese: bool = True,
        special: SpecialTokens = BERT_TOKENS,
        added: Sequence[AddedToken] = (),
    ) -> None:
        text = require("tensorflow_text", "text")
        words = [*words]
        needed = (special.padding, special.unknown, special.start, special.separator)
        if missing := sorted({*needed} - {*words}):
            raise ValueError(f"Expected the words {', '.join(missing)} in the vocabulary.")
        if broken := next((word for word in words if "\n" in word), None):
            raise ValueError(f"Expected words without line breaks, received {broken!r:.200}.")
        padding = len(words) - 1 - words[::-1].index(special.padding)  # the last one counts
        words[0], words[padding] = words[padding], words[0]
        # If a word occurs several times, the last one counts, as in Hugging Face's tokenizers.
        ids = {word: number for number, word in enumerate(words)}
        super().__init__(
            start=ids[special.start],
            separator=ids[special.separator],
            unknown=ids[special.unknown],
            between=special.between,
            mask=ids.get(special.mask),
            padding=padding,
        )
        strips = lower_case if strip_accents is None else strip_accents
        swaps = {0: padding, padding: 0}
        added = [dataclasses.replace(each, id=swaps.get(each.id, each.id)) for each in added]
        content = "".join(f"{word}\n" for word in words).encode()
        further = ("" if special == BERT_TOKENS else repr(special)) + (repr(added) if added else "")
        self.vocabulary = WordPieceVocabulary(
            size=max(len(words), *(each.id + 1 for each in added), 0),
            sha256=hashlib.sha256(content + further.encode()).hexdigest(),
            lower_case=lower_case,
            strip_accents=strips,
            split_chinese=split_chinese,
        )
        self._normal = _rewriter(
            lower_case=lower_case, strip_accents=strips, split_chinese=split_chinese
        )
        self._added = AddedTokens(added, self._normal) if added else None
        try:
            self._tokenizer = text.FastWordpieceTokenizer(
                _spelled(words, ids, _stand_ins(split_chinese=split_chinese), special.unknown),
                max_bytes_per_word=4 * _MOST_LETTERS,
                token_out_type=tf.int32,
                unknown_token=special.unknown,
            )
        except RuntimeError as error:
            raise ValueError(f"Expected word pieces that can be used: {error!s:.200}") from error
        self._letters = tf.constant([_letters(word, special.unknown) for word in words], tf.int32)
        settings = _Settings(lower_case, strips, split_chinese, special, added)
        self.lower_case, self._content, self._settings = lower_case, content, settings
        self._assets = written_assets(
            self,
            {
                _VOCABULARY_ASSET: content.decode(),
                _SETTINGS_ASSET: msgspec.json.encode(settings).decode(),
            },
        )

    @classmethod
    def from_assets(cls, folder: Path) -> Self:
        """Builds the tokenizer of an exported model from the vocabulary in its assets."""
        settings = read_record(
            folder / _SETTINGS_ASSET, _Settings, remedy="Export the model again."
        )
        return cls(read_words(folder / _VOCABULARY_ASSET), **msgspec.structs.asdict(settings))

    @property
    def words(self) -> list[str]:
        """The vocabulary in the order of the ids, the padding first."""
        return self._content.decode().split("\n")[:-1]

    def with_words(self, words: Sequence[str]) -> WordPieceTokenizer:
        """The tokenizer with further words, whose ids follow those that it has."""
        own = self.words
        if len(own) < self.vocabulary.size:
            raise ValueError("Expected no tokens that were added behind the vocabulary.")
        return WordPieceTokenizer([*own, *words], **msgspec.structs.asdict(self._settings))

    def pieces(self, text: tf.Tensor) -> tf.RaggedTensor:
        """The ids of the texts without special tokens."""
        if self._added is not None:
            return self._added.pieces(text, self._of_normal)
        return self._of_normal(self._normal(text))

    def _of_normal(self, text: tf.Tensor) -> tf.RaggedTensor:
        """The ids of normalised texts without added tokens."""
        pieces = self._tokenizer.tokenize(text)
        # The number of letters of each piece, negative if the piece continues a word.
        letters = tf.gather(self._letters, pieces.values)
        begins = letters > 0
        words = tf.cumsum(tf.cast(begins, tf.int32)) - 1
        too_long = tf.gather(tf.math.segment_sum(tf.abs(letters), words) > _MOST_LETTERS, words)

        def without_long() -> tuple[tf.Tensor, tf.Tensor]:
            ids = tf.where(too_long, self.unknown_id, pieces.values)
            kept_ids = tf.ragged.boolean_mask(
                pieces.with_values(ids), pieces.with_values(begins | ~too_long)
            )
            return kept_ids.values, kept_ids.row_splits

        values, splits = tf.cond(
            tf.reduce_any(too_long), without_long, lambda: (pieces.values, pieces.row_splits)
        )
        return tf.RaggedTensor.from_row_splits(values, splits, validate=False)


def read_words(path: Path) -> list[str]:
    """The words of a `vocab.txt`, one a line, as `WordPieceTokenizer` takes them."""
    lines = read_lines(path, remedy="Give the vocab.txt of a BERT.")
    return lines[:-1] if lines[-1] == "" else lines


def _letters(word: str, unknown: str) -> int:
    """The number of letters of a piece, negative if the piece continues a word."""
    if word == unknown or not word:
        return 1
    goes_on = word.startswith(PIECE_MARK) and word != PIECE_MARK
    return len(PIECE_MARK) - len(word) if goes_on else len(word)


def _spelled(
    words: Sequence[str], ids: dict[str, int], stand_ins: dict[int, str], unknown: str
) -> list[str]:
    """The words as they appear in normalised texts; unusable words are made unreachable."""
    # Also a character of private use, but no stand-in: no normalised text contains it.
    unreachable = chr(0xE000)
    translation = dict.fromkeys(_STAND_INS, unreachable) | stand_ins

    def spelled(number: int, word: str) -> str:
        is_usable = ids[word] == number and 0 < abs(_letters(word, unknown)) <= _MOST_LETTERS
        return word.translate(translation) if word and is_usable else f"{unreachable}{number}"

    return [spelled(*each) for each in enumerate(words)]


@functools.cache
def _rewriter(*, lower_case: bool, strip_accents: bool, split_chinese: bool) -> CodePointRewriter:
    """Rewrites characters as Hugging Face's `BertNormalizer` does, and puts in the stand-ins."""
    kinds = dict(categories())
    stand_ins = _stand_ins(split_chinese=split_chinese)
    kinds |= dict.fromkeys([*_NO_MARKS, *_NO_FORMAT, *stand_ins], "Lo")
    kinds |= dict.fromkeys(_MARK, "Mn")

    def rewritten(point: int, kind: str) -> str:
        text = chr(point)
        if text in "\t\n\r" or kind.startswith("Z"):
            return " "
        if kind in ("Cc", "Cf", "Co") or text == "\ufffd":
            return ""
        if strip_accents and point != _NOT_DECOMPOSED:
            decomposed = unicodedata.normalize("NFD", text)
            text = "".join(each for each in decomposed if kinds.get(ord(each)) != "Mn")
        if lower_case:
            # Letter by letter: in a whole word, Python uses another small sigma at its end.
            text = "".join(each.lower() for each in text)
        return text.translate(stand_ins)

    pairs = ((point, rewritten(point, kind)) for point, kind in kinds.items())
    return CodePointRewriter({point: text for point, text in pairs if text != chr(point)})


@functools.cache
def _stand_ins(*, split_chinese: bool) -> dict[int, str]:
    """The replacements of the characters that tensorflow-text would split differently."""
    points = [*_NO_PUNCTUATION, *(_NOT_CHINESE if split_chinese else _CHINESE)]
    stand_ins = {point: chr(stand_in) for point, stand_in in zip(points, _STAND_INS, strict=False)}
    # Characters that were punctuation in Unicode 8, but are not today, are replaced by characters
    # that became punctuation later: these are free, because stand-ins replace them.
    free = (chr(point) for point in _NO_PUNCTUATION)
    return stand_ins | dict(zip(_PUNCTUATION, free, strict=False))
