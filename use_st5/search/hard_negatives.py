"""Hard negatives: texts near an anchor, but not so near that they may be unlabelled positives."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from use_st5.encode.similarity import unit_rows
from use_st5.encode.vector_store import Encode, VectorCache, as_cache
from use_st5.search.exact import exact_search

# The number of anchors that are searched, and of vectors that are scaled, at a time.
_CHUNK = 4096

Triplet = tuple[str, str, str]


def mine_hard_negatives(
    encode: Encode,
    pairs: Sequence[tuple[str, str]],
    *,
    corpus: Sequence[str] | None = None,
    per_pair: int = 1,
    rank_from: int = 1,
    rank_to: int = 50,
    margin: float = 0.0,
    relative_margin: float = 0.05,
) -> list[Triplet]:
    """Finds the corpus texts that are nearest to each anchor and are not its positives.

    A text is excluded if it equals the anchor or one of the anchor's positives in `pairs` (ignoring
    case and white space). It is also excluded if its cosine with the anchor is greater than `c −
    max(margin, relative_margin · |c|)`, where c is the cosine of the anchor and the pair's
    positive: such a text may be an unlabelled positive. The default is TopK-PercPos with 95 %, of
    NV-Retriever (arXiv 2407.15831).

    Each distinct text is encoded once. The memory is that of `encode`, twice the vectors, and one
    block of the search, for any number of pairs.

    Args:
        encode: Sentences → embeddings `[sentences, dim]`; a `VectorCache` is used directly.
        pairs: Anchor and positive; an anchor with several positives has several pairs.
        corpus: The texts to search for negatives; by default all positives.
        per_pair: Maximum number of negatives of a pair.
        rank_from: The first rank, from 1, among the nearest texts that are not positives. A higher
            number skips possible false negatives.
        rank_to: The last rank.
        margin: Minimum difference between the positive's cosine and the negative's, in `[0, 2]`.
        relative_margin: The same as a fraction of the positive's cosine, in `[0, 1]`; the larger
            difference is used.

    Returns:
        Anchor, positive, negative: in the order of `pairs`, and the nearest negative first. A pair
        has fewer negatives, or none, if too few are within the ranks and margins. For equal
        cosines, the earlier text of the corpus comes first.

    Raises:
        ValueError: There is nothing to mine, or an option is out of range.
    """
    _check_options(per_pair, rank_from, rank_to, margin, relative_margin)
    pairs = _checked_pairs(pairs)
    candidates = _distinct([positive for _, positive in pairs] if corpus is None else corpus)
    texts = list(dict.fromkeys([*candidates, *(text for pair in pairs for text in pair)]))
    vectors = _directions(as_cache(encode), texts)
    anchors, positives = _places(pairs, texts)
    cosines = _cosines(vectors, anchors, positives)
    limits = cosines - np.maximum(margin, relative_margin * np.abs(cosines))
    known_positives = _known_positives(pairs)
    negatives: list[list[str]] = [[] for _ in pairs]
    for chunk, pair_groups in _by_anchor(anchors):
        left_out = [known_positives[_key(texts[anchor])] for anchor in chunk]
        neighbours = _nearest(vectors[chunk], vectors, candidates, left_out, (rank_from, rank_to))
        for anchor_pairs, (scores, rows) in zip(pair_groups, neighbours, strict=True):
            for pair in anchor_pairs:
                negative_rows = rows[scores <= limits[pair]]
                negatives[pair] = [candidates[row] for row in negative_rows[:per_pair]]
    return [(*pair, text) for pair, texts in zip(pairs, negatives, strict=True) for text in texts]


def _places(pairs: Sequence[tuple[str, str]], texts: Sequence[str]) -> np.ndarray:
    """Returns the positions of the anchors and the positives in `texts`, `[2, pairs]`."""
    places = {text: place for place, text in enumerate(texts)}
    return np.array([[places[text] for text in pair] for pair in pairs]).T


def _by_anchor(anchors: np.ndarray) -> Iterator[tuple[np.ndarray, list[np.ndarray]]]:
    """Yields distinct anchors, a chunk at a time, and for each anchor the pairs that contain it."""
    distinct_anchors, starts = np.unique(np.sort(anchors), return_index=True)
    pair_groups = np.split(np.argsort(anchors, kind="stable"), starts[1:])
    for start in range(0, len(distinct_anchors), _CHUNK):
        yield distinct_anchors[start : start + _CHUNK], pair_groups[start : start + _CHUNK]


def _nearest(
    queries: np.ndarray,
    vectors: np.ndarray,
    candidates: Sequence[str],
    left_out: Sequence[set[str]],
    ranks: tuple[int, int],
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yields each query's cosines and rows within the ranks, except the texts that are left out.

    `left_out` holds the keys of these texts. The candidates' vectors are the first of `vectors`.
    """
    keys = [_key(text) for text in candidates]
    k = min(ranks[1] + max(map(len, left_out)), len(keys))
    scores, rows = exact_search(queries, vectors[: len(keys)], k=k)
    for excluded_keys, query_scores, query_rows in zip(left_out, scores, rows, strict=True):
        places = [place for place, row in enumerate(query_rows) if keys[row] not in excluded_keys]
        ranked = places[ranks[0] - 1 : ranks[1]]
        yield query_scores[ranked], query_rows[ranked]


def _key(text: str) -> str:
    """Returns a key that is the same for texts that count as equal."""
    return " ".join(text.casefold().split())


def _distinct(corpus: Sequence[str]) -> list[str]:
    """Returns the first of each set of equal texts, in their order."""
    if isinstance(corpus, str) or not len(corpus):
        raise ValueError("corpus: expected a list of texts, received a string or no texts.")
    first: dict[str, str] = {}
    for text in corpus:
        first.setdefault(_key(text), text)
    return [*first.values()]


def _known_positives(pairs: Sequence[tuple[str, str]]) -> dict[str, set[str]]:
    """Returns anchor's key → keys of the texts it must not get: its positives and itself."""
    excluded_keys: dict[str, set[str]] = defaultdict(set)
    for anchor, positive in pairs:
        excluded_keys[_key(anchor)] |= {_key(anchor), _key(positive)}
    return excluded_keys


def _directions(embed: VectorCache, texts: list[str]) -> np.ndarray:
    """Scales the embeddings to length 1, in place and in parts: float64 doubles the memory."""
    vectors = embed(texts)
    for start in range(0, len(vectors), _CHUNK):
        vectors[start : start + _CHUNK] = unit_rows(vectors[start : start + _CHUNK])
    return vectors


def _cosines(vectors: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Cosines of pairs of rows, rounded to float32 as `exact_search` rounds them."""
    cosines = np.empty(len(first), np.float32)
    for start in range(0, len(first), _CHUNK):
        u, v = (vectors[rows[start : start + _CHUNK]] for rows in (first, second))
        cosines[start : start + _CHUNK] = np.einsum("nd,nd->n", u, v, dtype=np.float64)
    return cosines


def _checked_pairs(pairs: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    if not len(pairs):
        raise ValueError("pairs: expected pairs of anchor and positive, received none.")
    for number, pair in enumerate(pairs):
        texts = () if isinstance(pair, str) else tuple(pair)
        if len(texts) != 2 or not all(isinstance(text, str) for text in texts):
            raise ValueError(f"pairs[{number}]: expected anchor and positive, received {pair!r}.")
    return [(anchor, positive) for anchor, positive in pairs]


def _check_options(
    per_pair: int, rank_from: int, rank_to: int, margin: float, relative_margin: float
) -> None:
    if per_pair < 1:
        raise ValueError(f"per_pair: expected at least 1, received {per_pair}.")
    if rank_from < 1 or rank_to - rank_from + 1 < per_pair:
        raise ValueError(
            f"rank_from, rank_to: expected at least {per_pair} ranks (per_pair) from 1, received "
            f"{rank_from} to {rank_to}."
        )
    if not 0 <= margin <= 2:
        raise ValueError(f"margin: expected a number in [0, 2], received {margin}.")
    if not 0 <= relative_margin <= 1:
        raise ValueError(
            f"relative_margin: expected a number in [0, 1], received {relative_margin}."
        )
