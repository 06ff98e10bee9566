"""Sentences to the ids of a Transformer's tokens, without TensorFlow."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from use_st5._imports import require
from use_st5.engines.word_ids import Flat, PieceIds
from use_st5.io.records import Count, read_record
from use_st5.tokenizers.ngram_vocabulary import NGramVocabulary

# A long text is cut at spaces into pieces of at least so many characters.
_PIECE = 100
_LONG = 2**20  # characters that are read at once
# A space between two characters that no normalization joins: a token ends before it.
_SPACE = re.compile(r"(?<=[!-~]) (?=[!-~])")
_SPACE_MARK = "\u2581"  # stands for a space in a normal text of SentencePiece
_LIMIT = 2**26  # bytes of a vocabulary
_AGAIN = "Copy or export the model again."
_ELSE = "Load the model with backend='tensorflow'."


class FramedIds:
    """The ids of word pieces or byte pairs between two special tokens."""

    def __init__(self, tokenizer: Any, *, start: int, end: int) -> None:
        self._tokenizer = tokenizer
        self._start, self._end = start, end

    def ids(self, texts: list[str], max_tokens: int | None = None) -> list[list[int]]:
        """The ids of each text, at most `max_tokens`, including special ones."""
        room = None if max_tokens is None else max_tokens - 2
        encodings = self._tokenizer.encode_batch_fast(
            _beginnings(texts, room), add_special_tokens=False
        )
        return [[self._start, *each.ids[:room], self._end] for each in encodings]

    def write(self, path: Path, max_tokens: int | None) -> None:
        """Writes a `tokenizer.json` of the package tokenizers that gives the same ids."""
        tokenizers = require("tokenizers", "onnx")
        copy = tokenizers.Tokenizer.from_str(self._tokenizer.to_str())
        copy.post_processor = tokenizers.processors.TemplateProcessing(
            single="<start> $A <end>",
            special_tokens=[("<start>", self._start), ("<end>", self._end)],
        )
        if max_tokens is not None:
            copy.enable_truncation(max_tokens)
        path.write_text(copy.to_str(pretty=True), encoding="utf-8")


class SentencePieceIds:
    """The ids of a SentencePiece model's pieces, or their `piece_ids`, in a frame of two parts."""

    def __init__(
        self,
        model: bytes,
        piece_ids: Sequence[int] | None = None,
        *,
        start: Sequence[int] = (),
        end: int = 1,
    ) -> None:
        sentencepiece = require("sentencepiece", "onnx")
        self._model = sentencepiece.SentencePieceProcessor(model_proto=model)
        self._ids = piece_ids
        self._start, self._end = start, end

    def ids(self, texts: list[str], max_tokens: int | None = None) -> list[list[int]]:
        """The ids of each text."""
        room = None if max_tokens is None else max_tokens - 1 - len(self._start)
        if self._start:  # As in `FramedSentencePieceTokenizer`.
            texts = [text.replace("\u0085", " ") for text in texts]
        beginnings, unknown = _beginnings(texts, room), self._model.unk_id()
        id_lists = self._model.encode(beginnings, out_type=int, num_threads=1)
        for place, each in enumerate(id_lists):
            if unknown in each:
                id_lists[place] = self._model.encode(self._by_bytes(beginnings[place]))
        cut_lists = (each[:room] for each in id_lists)
        if self._ids is not None:
            cut_lists = (map(self._ids.__getitem__, each) for each in cut_lists)
        return [[*self._start, *each, self._end] for each in cut_lists]

    def _by_bytes(self, text: str) -> str:
        """A text with each unknown character as often as it has bytes, as the graph counts it."""
        unknown = self._model.unk_id()
        normal = "".join(
            each * len(each.encode()) if self._model.piece_to_id(each) == unknown else each
            for each in self._model.normalize(text)
        )
        repeated = normal.removeprefix(_SPACE_MARK).replace(_SPACE_MARK, " ")
        # Few normal texts change when they are normalized again, such as the letters of a ligature
        # before an accent.
        return repeated if self._model.normalize(repeated) == normal else text


def _beginnings(texts: list[str], tokens: int | None) -> list[str]:
    """The beginning of each text, which has at least the first tokens."""
    if tokens is None:
        return texts
    return [_cut(text, tokens) if len(text) > tokens * _PIECE else text for text in texts]


def _cut(text: str, pieces: int) -> str:
    """The first pieces of a text; each has at least one token."""
    end = 0
    for _ in range(pieces):
        space = _SPACE.search(text, end + _PIECE)
        if space is None:
            return text
        end = space.start()
    return text[:end]


TokenIds = FramedIds | SentencePieceIds | PieceIds


class FlatIds:
    """The ids of texts without their frames, one text after the other; a text may have none.

    Args:
        tokens: Gives the ids of texts in a frame of two special ones.
        ignored: An id that is left out; 0: none.
        max_tokens: As `ids` of `tokens` takes it.
    """

    def __init__(
        self, tokens: TokenIds, ignored: int, max_tokens: Callable[[], int | None]
    ) -> None:
        self._tokens, self._ignored, self._max_tokens = tokens, ignored, max_tokens

    def flat(self, texts: list[str]) -> Flat:
        """The ids of all texts, and the place where each text begins."""
        rows = [row[1:-1] for row in self._tokens.ids(texts, self._max_tokens())]
        if self._ignored:
            rows = [[number for number in row if number != self._ignored] for row in rows]
        starts = np.cumsum([0, *map(len, rows)])
        return np.fromiter(chain.from_iterable(rows), np.int64, starts[-1]), starts

    def blocks(self, text: str) -> Iterator[np.ndarray]:
        """The ids of one text in blocks, in bounded memory."""
        end = 0
        while end < len(text) or not end:
            start, space = end, _SPACE.search(text, end + _LONG)
            end = space.start() if space and not self._max_tokens() else max(len(text), 1)
            # A byte pair begins with its space; other pieces do not have it.
            yield self.flat([text[start:end]])[0]

    def token_counts(self, texts: list[str]) -> np.ndarray:
        """The tokens of each text in its frame before any is cut, int64 `[texts]`."""
        return np.fromiter(map(len, self._tokens.ids(texts)), np.int64, len(texts))


def open_tokenizer(kind: str | None, folder: Path) -> TokenIds:
    """The tokenizer of a model, named by its `use_st5.json`, from the folder of its assets."""
    if kind is None or kind not in _READERS:
        raise ValueError(f"{folder.parent}: no engine has a tokenizer {kind!r}. {_ELSE}")
    return _READERS[kind](folder)


def _words(folder: Path) -> TokenIds:
    tokenizers = require("tokenizers", "onnx")
    settings = read_record(folder / "wordpiece.json", dict[str, Any], remedy=_AGAIN)
    if settings.get("added"):  # Only the graph looks for them.
        raise ValueError(f"{folder.parent}: the tokenizer has added tokens. {_ELSE}")
    given, path = settings.get("special", {}), folder / "vocab.txt"
    ids = {word: number for number, word in enumerate(_lines(path))}
    with _reading(path):
        names = {"unknown": "[UNK]", "start": "[CLS]", "separator": "[SEP]"}
        start, end = (ids[given.get(name, names[name])] for name in ("start", "separator"))
        unknown = given.get("unknown", names["unknown"])
        tokenizer = tokenizers.Tokenizer(
            tokenizers.models.WordPiece(ids, unk_token=unknown, max_input_chars_per_word=100)
        )
        tokenizer.normalizer = tokenizers.normalizers.BertNormalizer(
            clean_text=True,
            handle_chinese_chars=settings["split_chinese"],
            strip_accents=settings["strip_accents"],
            lowercase=settings["lower_case"],
        )
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    return FramedIds(tokenizer, start=start, end=end)


def _lines(path: Path) -> list[str]:
    """The lines of a file in UTF-8."""
    with _reading(path):
        lines = path.read_bytes().decode().replace("\r\n", "\n").split("\n")
    return lines if lines[-1] else lines[:-1]


@contextlib.contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Turns an error while a file is read into a `ValueError` that names the file."""
    try:
        yield
    except (FileNotFoundError, ImportError):
        raise
    except Exception as error:  # the packages' own kinds
        reason = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
        raise ValueError(f"{path}: is no file of a tokenizer ({reason}). {_AGAIN}") from error


def _byte_pairs(folder: Path) -> TokenIds:
    tokenizers = require("tokenizers", "onnx")
    if (folder / "byte_pair.json").is_file():
        raise ValueError(f"{folder.parent}: these byte pairs are not RoBERTa's. {_ELSE}")
    path = folder / "vocab.json"
    ids = read_record(path, dict[str, Count], remedy=_AGAIN, limit=_LIMIT)
    with _reading(path):
        # Padding and the token with the id 0 have swapped their ids, as in `BytePairTokenizer`.
        swaps = {0: ids["<pad>"], ids["<pad>"]: 0}
        ids = {piece: swaps.get(number, number) for piece, number in ids.items()}
        start, end = ids["<s>"], ids["</s>"]
    lines = _lines(folder / "merges.txt")
    merges = [tuple(line.split(" ")) for line in lines if line and not line.startswith("#version")]
    with _reading(folder / "merges.txt"):
        tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(ids, merges))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    return FramedIds(tokenizer, start=start, end=end)


def _sentence_pieces(folder: Path) -> TokenIds:
    path, ids = folder / "piece_ids.txt", None
    if path.is_file():
        with _reading(path):
            ids = [*map(int, path.read_text("utf-8").split())]
    path = folder / "sentencepiece.model"
    with _reading(path):
        return SentencePieceIds(path.read_bytes(), ids)


def _framed_sentence_pieces(folder: Path) -> TokenIds:
    path = folder / "framed_sentencepiece.model"
    with _reading(path):
        return SentencePieceIds(path.read_bytes(), start=[1], end=2)


_READERS: dict[str, Callable[[Path], TokenIds]] = {
    "wordpiece": _words,
    "byte_pair": _byte_pairs,
    "sentencepieces": _sentence_pieces,
    "framed_sentencepieces": _framed_sentence_pieces,
    "pieces": lambda folder: PieceIds(NGramVocabulary.load(folder / "vocabulary.txt"), whole=False),
    "unigrams": lambda folder: PieceIds(
        NGramVocabulary.load(folder / "vocabulary.txt"), whole=True
    ),
}
