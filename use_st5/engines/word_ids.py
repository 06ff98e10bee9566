"""The ids of the USE models' tokenizers, without TensorFlow."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain

import numpy as np

from use_st5.engines.ptb_tokens import is_letter, normal, parts, pieces, tokens_of
from use_st5.tokenizers.ngram_vocabulary import (
    EMPTY_ID,
    FIRST_TERM_ID,
    PIECE_MARK,
    NGramVocabulary,
)

# The most parts of texts whose tokens are kept; some 10 MB.
_KEPT = 2**16
# The most unknown words whose numbers are kept, if unknown pairs have buckets.
_MOST_WORDS = 2**20
# Characters of a long text that are read at once.
_PIECE = 2**20
# For fewer tokens than this, a loop in Python takes less time than the calls of NumPy.
_FEW = 128
# The limits of `use_st5.tokenizers.token_tokenizer`.
_PIECE_LETTERS, _MOST_PIECES = 16, 8


# The ids of all texts, one text after the other, int64 `[terms]`; the place where each text begins,
# and the number of ids, int64 `[batch + 1]`.
Flat = tuple[np.ndarray, np.ndarray]


class PartCache(dict[str, tuple[int, ...]]):
    """A cache of bounded size for the numbers of the tokens of each part of a text.

    Args:
        numbers: Part → numbers.
    """

    def __init__(self, numbers: Callable[[str], tuple[int, ...]]) -> None:
        super().__init__()
        self._numbers = numbers

    def __missing__(self, part: str) -> tuple[int, ...]:
        if len(self) >= _KEPT:
            self.clear()
        numbers = self[part] = self._numbers(part)
        return numbers

    def of(self, found: Sequence[str]) -> Iterator[int]:
        """The numbers of all parts, one part after the other."""
        return chain.from_iterable(map(self.__getitem__, found))

    def flat(self, texts: Sequence[str], *, empty: int) -> Flat:
        """The numbers of all texts, one after the other; `empty` for a text without tokens."""
        numbers: list[int] = []
        starts = [0]
        for text in texts:
            numbers += self.of(parts(normal(text)))
            if len(numbers) == starts[-1]:
                numbers.append(empty)
            starts.append(len(numbers))
        return np.array(numbers, np.int64), np.array(starts, np.int64)


class NGramIds:
    """Maps sentences to ids of unigrams and bi-grams, as `NGramTokenizer.flat` does."""

    def __init__(self, vocabulary: NGramVocabulary) -> None:
        self.vocabulary = vocabulary
        # A known token's number is its id. An unknown token that is part of a known pair has a
        # number of its own above all ids; if pairs have buckets or words pieces, every unknown
        # token has.
        self._numbers = dict(
            zip(vocabulary.unigrams, range(FIRST_TERM_ID, vocabulary.size), strict=False)
        )
        self._pieces = WordPieces(vocabulary) if vocabulary.has_pieces else None
        self._spelled: list[str] = []
        # Number → the first of its ids, the number of further ones, and these of unknown tokens.
        self._ids = np.arange(vocabulary.size)
        self._more = np.zeros(vocabulary.size, np.int64)
        self._own_ids: list[tuple[int, ...]] = []
        words = " ".join(vocabulary.bigrams).split()
        for word in words:
            if word not in self._numbers:
                self._own(word)
        numbers = np.fromiter(map(self._numbers.__getitem__, words), np.int64, len(words))
        keys = (numbers[::2] << 32) + numbers[1::2]
        order = np.argsort(keys)
        ids = np.arange(len(keys)) + FIRST_TERM_ID + len(vocabulary.unigrams)
        self._pairs = dict(zip(keys.tolist(), ids.tolist(), strict=True))
        self._keys = np.append(keys[order], -1)
        self._pair_ids = np.append(ids[order], -1)
        self._cache = PartCache(self._of_part)
        self._fixed = len(self._spelled)

    def flat(self, texts: Sequence[str]) -> Flat:
        """The ids of all texts, one text after the other."""
        self._forget()
        numbers, starts = self._cache.flat(texts, empty=EMPTY_ID)
        previous = np.empty_like(numbers)
        previous[1:] = numbers[:-1]
        previous[starts[:-1]] = -1
        ids, pairs = self._terms(numbers, previous)
        return ids, starts + pairs[starts]

    def blocks(self, text: str) -> Iterator[np.ndarray]:
        """The ids of one text in blocks, each int64 `[terms]`, in bounded memory."""
        text = normal(text)
        last, start = -1, 0
        for piece in pieces(text, _PIECE):
            self._forget()
            piece_parts = parts(piece, first=start == 0, last=start + len(piece) == len(text))
            start += len(piece)
            numbers = list(self._cache.of(piece_parts))
            if not numbers:
                continue
            if len(numbers) < _FEW:
                yield self._few_terms(numbers, last)
            else:
                found = np.array(numbers, np.int64)
                yield self._terms(found, np.append(last, found[:-1]))[0]
            last = numbers[-1]
        if last < 0:
            yield np.array([EMPTY_ID])

    def _few_terms(self, numbers: list[int], before: int) -> np.ndarray:
        """The ids that `_terms` gives for the tokens of one text, after the token `before`."""
        ids = []
        for number in numbers:
            pair = self._pairs.get((before << 32) + number)
            if pair is None and before >= 0 and self.vocabulary.bigram_buckets:
                pair = self._bucket_of_pair(before, number)
            if pair is not None:
                ids.append(pair)
            known = number < self.vocabulary.size
            ids += [number] if known else self._own_ids[number - self.vocabulary.size]
            before = number
        return np.array(ids, np.int64)

    def _terms(self, numbers: np.ndarray, before: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The ids of tokens, each after that of the pair it ends; the further ids so far."""
        keys = (before << 32) + numbers
        places = self._keys[:-1].searchsorted(keys)
        has_pair = self._keys[places] == keys
        pair_ids = self._pair_ids[places]
        if self.vocabulary.bigram_buckets:
            unknown = np.flatnonzero(~has_pair & (before >= 0))
            for place in unknown.tolist():
                pair_ids[place] = self._bucket_of_pair(int(before[place]), int(numbers[place]))
            has_pair[unknown] = True
        pairs = np.zeros(len(numbers) + 1, np.int64)
        has_pair.cumsum(out=pairs[1:])
        more = self._more[numbers]
        further = pairs + np.append(0, more.cumsum())
        places = further[:-1] + has_pair + np.arange(len(numbers))
        ids = np.empty(len(numbers) + further[-1], np.int64)
        ids[places] = self._ids[numbers]
        ids[places[has_pair] - 1] = pair_ids[has_pair]
        for token in np.flatnonzero(more).tolist():
            own_ids = self._own_ids[numbers[token] - self.vocabulary.size]
            ids[places[token] : places[token] + len(own_ids)] = own_ids
        return ids, further

    def _of_part(self, part: str) -> tuple[int, ...]:
        return tuple(map(self._number, tokens_of(part)))

    def _number(self, token: str) -> int:
        number = self._numbers.get(token)
        if number is not None:
            return number
        if self.vocabulary.bigram_buckets or self._pieces:
            return self._own(token)
        return bucket_of(token, self.vocabulary)

    def _own(self, token: str) -> int:
        """The number of a token: its id, or if it is unknown, a number of its own."""
        number = self._numbers.get(token)
        if number is None:
            number = self._numbers[token] = self.vocabulary.size + len(self._spelled)
            self._spelled.append(token)
            if number >= len(self._ids):
                self._ids = np.append(self._ids, np.zeros(len(self._ids), np.int64))
                self._more = np.append(self._more, np.zeros(len(self._more), np.int64))
            own_ids: tuple[int, ...] = (bucket_of(token, self.vocabulary),)
            if self._pieces:
                own_ids = self._pieces.ids(token)
            self._own_ids.append(own_ids)
            self._ids[number], self._more[number] = own_ids[0], len(own_ids) - 1
        return number

    def _bucket_of_pair(self, first: int, second: int) -> int:
        pair = f"{self._spelling(first)} {self._spelling(second)}"
        bucket = fingerprint64(pair.encode()) % self.vocabulary.bigram_buckets
        return self.vocabulary.bigram_bucket_id + bucket

    def _spelling(self, number: int) -> str:
        if number >= self.vocabulary.size:
            return self._spelled[number - self.vocabulary.size]
        return self.vocabulary.unigrams[number - FIRST_TERM_ID]

    def _forget(self) -> None:
        """Forgets the numbers of unknown words if there are too many."""
        if len(self._spelled) - self._fixed < _MOST_WORDS:
            return
        for word in self._spelled[self._fixed :]:
            del self._numbers[word]
        del self._spelled[self._fixed :], self._own_ids[self._fixed :]
        self._cache.clear()


class WordPieces:
    """The ids of a token, as `use_st5.tokenizers.word_pieces` gives them."""

    def __init__(self, vocabulary: NGramVocabulary) -> None:
        self._vocabulary = vocabulary
        self.known = dict(
            zip(vocabulary.unigrams, range(FIRST_TERM_ID, vocabulary.size), strict=False)
        )

    def ids(self, token: str) -> tuple[int, ...]:
        """The id of a known token, or the ids of its parts."""
        if token in self.known:
            return (self.known[token],)
        # It is cut around each character that is neither letter nor mark nor number.
        cut = "".join(each if is_letter(each) else f" {each} " for each in token)
        return tuple(chain.from_iterable(map(self._of_part, filter(None, cut.split(" ")))))

    def _of_part(self, word: str) -> list[int]:
        """The ids of a part: its own, or those of the longest pieces from left to right."""
        word_id = self.known.get(word)
        if word_id is not None:
            return [word_id]
        ids: list[int] = []
        while word and len(ids) < _MOST_PIECES:
            mark = PIECE_MARK if ids else ""
            sizes = range(min(len(word), _PIECE_LETTERS), 0, -1)
            fitting_sizes = (size for size in sizes if mark + word[:size] in self.known)
            size = next(fitting_sizes, 0)
            if not size:
                return [*ids, bucket_of(word, self._vocabulary)]
            ids.append(self.known[mark + word[:size]])
            word = word[size:]
        return ids


class PieceIds:
    """The ids of `PieceTokenizer`, or with `whole` those of `UnigramTokenizer`.

    Args:
        vocabulary: The words and their ids.
        whole: Whether an unknown word has the id of one bucket, not the ids of several pieces.
    """

    def __init__(self, vocabulary: NGramVocabulary, *, whole: bool) -> None:
        vocabulary.check_unigrams_only()
        self._vocabulary = vocabulary
        self._pieces = WordPieces(vocabulary)
        self._whole = whole
        self._cache = PartCache(self._of_part)

    def ids(self, texts: list[str], max_tokens: int | None = None) -> list[list[int]]:
        """The ids of each text; `EMPTY_ID` for a text without tokens."""
        return [[*self._cache.of(parts(normal(text)))][:max_tokens] or [EMPTY_ID] for text in texts]

    def _of_part(self, part: str) -> tuple[int, ...]:
        of_token = self._whole_id if self._whole else self._pieces.ids
        return tuple(chain.from_iterable(map(of_token, tokens_of(part))))

    def _whole_id(self, token: str) -> tuple[int]:
        known_id = self._pieces.known.get(token)
        return (bucket_of(token, self._vocabulary) if known_id is None else known_id,)


def bucket_of(word: str, vocabulary: NGramVocabulary) -> int:
    """The id of the hash bucket of an unknown word."""
    bucket = fingerprint64(word.encode()) % vocabulary.unigram_buckets
    return vocabulary.unigram_bucket_id + bucket


# FarmHash's 64-bit fingerprint, by which `tf.strings.to_hash_bucket_fast` finds a bucket.
_MASK = 2**64 - 1
_K0, _K1, _K2 = 0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F


def fingerprint64(text: bytes) -> int:
    """The fingerprint of bytes (google/farmhash, `Fingerprint64`)."""
    size = len(text)
    if size > 64:
        return _of_long(text)
    if size > 32:
        return _of_33_to_64(text)
    if size > 16:
        mul = (_K2 + 2 * size) & _MASK
        a, b = _word(text, 0) * _K1 & _MASK, _word(text, 8)
        c, d = _word(text, size - 8) * mul & _MASK, _word(text, size - 16) * _K2
        return _mixed(_turned(a + b, 43) + _turned(c, 30) + d, a + _turned(b + _K2, 18) + c, mul)
    return _of_few(text)


def _of_few(text: bytes) -> int:
    """The fingerprint of at most 16 bytes."""
    size = len(text)
    mul = (_K2 + 2 * size) & _MASK
    if size >= 8:
        a, b = _word(text, 0) + _K2 & _MASK, _word(text, size - 8)
        return _mixed(_turned(b, 37) * mul + a, (_turned(a, 25) + b) * mul, mul)
    if size >= 4:
        first, last = (int.from_bytes(each, "little") for each in (text[:4], text[-4:]))
        return _mixed(size + (first << 3), last, mul)
    if size:
        y, z = text[0] + (text[size >> 1] << 8), size + (text[-1] << 2)
        return _folded((y * _K2 ^ z * _K0) & _MASK) * _K2 & _MASK
    return _K2


def _of_33_to_64(text: bytes) -> int:
    size = len(text)
    mul = (_K2 + 2 * size) & _MASK
    a, b = _word(text, 0) * _K2 & _MASK, _word(text, 8)
    c, d = _word(text, size - 8) * mul & _MASK, _word(text, size - 16) * _K2
    y = (_turned(a + b, 43) + _turned(c, 30) + d) & _MASK
    z = _mixed(y, a + _turned(b + _K2, 18) + c, mul)
    e, f = _word(text, 16) * mul & _MASK, _word(text, 24)
    g = (y + _word(text, size - 32)) * mul & _MASK
    h = (z + _word(text, size - 24)) * mul & _MASK
    return _mixed(_turned(e + f, 43) + _turned(g, 30) + h, e + _turned(f + a, 18) + g, mul)


def _of_long(text: bytes) -> int:
    """The fingerprint of more than 64 bytes, in blocks of 64; the last one may overlap."""
    seed = 81
    x, y = (seed * _K2 + _word(text, 0)) & _MASK, (seed * _K1 + 113) & _MASK
    z = _folded((y * _K2 + 113) & _MASK) * _K2 & _MASK
    v, w = (0, 0), (0, 0)

    def step(at: int, mul: int, weight: int) -> None:
        nonlocal x, y, z, v, w
        x = _turned(x + y + v[0] + _word(text, at + 8), 37) * mul & _MASK
        y = _turned(y + v[1] + _word(text, at + 48), 42) * mul & _MASK
        x ^= w[1] * weight & _MASK
        y = (y + v[0] * weight + _word(text, at + 40)) & _MASK
        z = _turned(z + w[0], 33) * mul & _MASK
        v = _weak(text, at, v[1] * mul, x + w[0])
        w = _weak(text, at + 32, z + w[1], y + _word(text, at + 16))
        x, z = z, x

    for at in range(0, (len(text) - 1) // 64 * 64, 64):
        step(at, _K1, 1)
    mul = (_K1 + ((z & 0xFF) << 1)) & _MASK
    w = (w[0] + (len(text) - 1 & 63)) & _MASK, w[1]
    v = (v[0] + w[0]) & _MASK, v[1]
    w = (w[0] + v[0]) & _MASK, w[1]
    step(len(text) - 64, mul, 9)
    return _mixed(_mixed(v[0], w[0], mul) + _folded(y) * _K0 + z, _mixed(v[1], w[1], mul) + x, mul)


def _word(text: bytes, at: int) -> int:
    return int.from_bytes(text[at : at + 8], "little")


def _turned(value: int, bits: int) -> int:
    value &= _MASK
    return (value >> bits | value << (64 - bits)) & _MASK


def _folded(value: int) -> int:
    return value ^ value >> 47


def _mixed(u: int, v: int, mul: int) -> int:
    u, v = u & _MASK, v & _MASK
    a = _folded((u ^ v) * mul & _MASK)
    return _folded((v ^ a) * mul & _MASK) * mul & _MASK


def _weak(text: bytes, at: int, a: int, b: int) -> tuple[int, int]:
    w, x, y, z = (_word(text, at + each) for each in (0, 8, 16, 24))
    a = (a + w) & _MASK
    b = _turned(b + a + z, 21)
    total = (a + x + y) & _MASK
    return (total + z) & _MASK, (b + _turned(total, 44) + a) & _MASK
