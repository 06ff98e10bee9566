"""Sentences to the ids of a USE Transformer's tokens, without TensorFlow."""

from __future__ import annotations

from itertools import chain

from use_st5.engines.farmhash import fingerprint64
from use_st5.engines.ngram_ids import PartCache
from use_st5.engines.ptb_tokens import is_letter, normal, parts, tokens_of
from use_st5.tokenizers.ngram_vocabulary import (
    EMPTY_ID,
    FIRST_TERM_ID,
    PIECE_MARK,
    NGramVocabulary,
)

# The limits of `use_st5.tokenizers.piece_tokenizer`.
_PIECE_LETTERS = 16
_MOST_PIECES = 8


class PieceIds:
    """The ids of `PieceTokenizer`, or with `whole` those of `UnigramTokenizer`.

    Args:
        vocabulary: The words and their ids.
        whole: Whether an unknown word has the id of one bucket, not the ids of several pieces.
    """

    def __init__(self, vocabulary: NGramVocabulary, *, whole: bool) -> None:
        vocabulary.check_unigrams_only()
        self._vocabulary = vocabulary
        self._known = dict(
            zip(vocabulary.unigrams, range(FIRST_TERM_ID, vocabulary.size), strict=False)
        )
        self._whole = whole
        self._cache = PartCache(self._of_part)

    def ids(self, texts: list[str], max_tokens: int | None = None) -> list[list[int]]:
        """The ids of each text; `EMPTY_ID` for a text without tokens."""
        return [[*self._cache.of(parts(normal(text)))][:max_tokens] or [EMPTY_ID] for text in texts]

    def _of_part(self, part: str) -> tuple[int, ...]:
        return tuple(chain.from_iterable(map(self._of_token, tokens_of(part))))

    def _of_token(self, token: str) -> list[int]:
        token_id = self._known.get(token)
        if token_id is not None:
            return [token_id]
        if self._whole:
            return [self._bucket(token)]
        return [*chain.from_iterable(map(self._pieces, _at_punctuation(token)))]

    def _pieces(self, word: str) -> list[int]:
        """The ids of a word: its own, or those of the longest pieces from left to right."""
        word_id = self._known.get(word)
        if word_id is not None:
            return [word_id]
        ids: list[int] = []
        while word and len(ids) < _MOST_PIECES:
            mark = PIECE_MARK if ids else ""
            sizes = range(min(len(word), _PIECE_LETTERS), 0, -1)
            fitting_sizes = (size for size in sizes if mark + word[:size] in self._known)
            size = next(fitting_sizes, 0)
            if not size:
                return [*ids, self._bucket(word)]
            ids.append(self._known[mark + word[:size]])
            word = word[size:]
        return ids

    def _bucket(self, word: str) -> int:
        bucket = fingerprint64(word.encode()) % self._vocabulary.unigram_buckets
        return self._vocabulary.unigram_bucket_id + bucket


def _at_punctuation(token: str) -> list[str]:
    """Cuts a token around each character that is neither letter nor mark nor number."""
    spaced = "".join(each if is_letter(each) else f" {each} " for each in token)
    return [part for part in spaced.split(" ") if part]
