"""Search by words, and the fusion of rankings."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Hashable, Iterable
from typing import TypeVar

import numpy as np

from use_st5._imports import require

Item = TypeVar("Item", bound=Hashable)

# Letters of scripts that write no spaces: Thai, Lao, Burmese, Khmer, kana, Han.
_WITHOUT_SPACES = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\U00020000-\U0003ffff]+"
)


class WordIndex:
    """BM25 (Robertson and Zaragoza 2009) of `bm25s` (extra `search`), in memory.

    Letters are compared as NFKC folds them, without vowel signs and other marks that stand alone.
    Where a script writes no spaces, two letters in a row are a word.

    Args:
        texts: The texts to search.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self._library = require("bm25s", "search")
        tokens = self._library.tokenize([*map(spaced, texts)], show_progress=False)
        self._size = len(tokens.ids)
        self._index = self._library.BM25() if tokens.vocab else None
        if self._index is not None:
            self._index.index(tokens, show_progress=False)

    def search(
        self, query: str, *, k: int, rows: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """The scores, greatest first, and rows of at most `k` texts that share a word with a query.

        For equal scores the lower row comes first. `rows`, ascending: only these are searched.
        """
        words = self._library.tokenize([spaced(query)], return_ids=False, show_progress=False)[0]
        scores = np.zeros(self._size, np.float32)
        if self._index is not None and words:
            scores = self._index.get_scores(words)
        rows = np.flatnonzero(scores) if rows is None else rows[scores[rows] > 0]
        order = np.argsort(-scores[rows], kind="stable")[:k]
        return scores[rows[order]], rows[order]


def spaced(text: str) -> str:
    """A text whose words can be cut at spaces, in every script; ASCII stays as it is."""
    if text.isascii():
        return text
    folded = unicodedata.normalize("NFKC", text).casefold()
    letters = "".join(letter for letter in folded if unicodedata.category(letter)[0] != "M")
    return _WITHOUT_SPACES.sub(_pairs_of_letters, letters)


def _pairs_of_letters(match: re.Match[str]) -> str:
    run = match[0]
    return f" {' '.join(run[n : n + 2] for n in range(max(1, len(run) - 1)))} "


def reciprocal_ranks(*rankings: Iterable[Item]) -> dict[Item, float]:
    """Joins rankings, best first (Cormack et al. 2009): item → Σ 1 / (60 + rank).

    An item that a ranking lacks gets nothing from it.
    """
    scores: dict[Item, float] = {}
    for ranking in rankings:
        for rank, item in enumerate(ranking, start=1):
            scores[item] = scores.get(item, 0) + 1 / (60 + rank)
    return scores
