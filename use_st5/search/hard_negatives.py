"""Hard negatives: texts near an anchor, but not so near that they may be unlabelled positives."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from use_st5.encode.similarity import unit_rows
from use_st5.encode.vector_store import Encode, as_cache
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
    """
    if not 1 <= rank_from <= rank_to:
        raise ValueError(f"expected ranks from 1, received {rank_from} to {rank_to}.")
    distinct_texts: dict[str, str] = {}  # key → the first text that has it
    for text in [positive for _, positive in pairs] if corpus is None else corpus:
        distinct_texts.setdefault(_key(text), text)
    keys, candidates = [*distinct_texts], [*distinct_texts.values()]
    texts = list(dict.fromkeys([*candidates, *(text for pair in pairs for text in pair)]))
    places = {text: place for place, text in enumerate(texts)}
    vectors = as_cache(encode)(texts)
    for start in range(0, len(vectors), _CHUNK):  # In parts: float64 doubles the memory.
        vectors[start : start + _CHUNK] = unit_rows(vectors[start : start + _CHUNK])
    left_out: dict[str, set[str]] = defaultdict(set)
    pairs_of: dict[int, list[int]] = defaultdict(list)
    for number, (anchor, positive) in enumerate(pairs):
        left_out[_key(anchor)] |= {_key(anchor), _key(positive)}
        pairs_of[places[anchor]].append(number)
    negatives: list[list[str]] = [[] for _ in pairs]
    anchors = [*pairs_of]
    for start in range(0, len(anchors), _CHUNK):
        chunk = anchors[start : start + _CHUNK]
        excluded = [left_out[_key(texts[place])] for place in chunk]
        k = min(rank_to + max(map(len, excluded)), len(keys))
        scores, rows = exact_search(vectors[chunk], vectors[: len(keys)], k=k)
        for line, place in enumerate(chunk):
            columns = [c for c in range(k) if keys[rows[line, c]] not in excluded[line]]
            ranked = columns[rank_from - 1 : rank_to]
            for number in pairs_of[place]:
                own = vectors[places[pairs[number][1]]]
                # Rounded to float32, as the search rounds.
                cosine = np.float32(np.dot(vectors[place].astype(np.float64), own))
                limit = cosine - np.maximum(margin, relative_margin * abs(cosine))
                chosen = [rows[line, c] for c in ranked if scores[line, c] <= limit]
                negatives[number] = [candidates[row] for row in chosen[:per_pair]]
    return [(*pair, text) for pair, texts in zip(pairs, negatives, strict=True) for text in texts]


def _key(text: str) -> str:
    """Returns a key that is the same for texts that count as equal."""
    return " ".join(text.casefold().split())
