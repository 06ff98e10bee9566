"""Hard negatives: texts near an anchor, but not so near that they may be unlabelled positives."""

from __future__ import annotations

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np

from use_st5.encode.similarity import cosine, unit_rows
from use_st5.encode.vector_store import Encode, as_cache
from use_st5.search.exact import exact_search

# The number of anchors that are searched, and of vectors that are scaled, at a time.
_CHUNK = 4096

Triplet = tuple[str, str, str]
# Pairs → their scores, as `CrossEncoder.predict`.
PairScores = Callable[[list[tuple[str, str]]], Any]
# The cosine of a positive, and the texts that may be its negatives with theirs, the nearest first.
Candidates = tuple[np.float32, list[tuple[str, np.float32]]]


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
    max_score: float = np.inf,
    min_score: float = -np.inf,
    guide: Any = None,
    log: Callable[[str], None] | None = None,
) -> list[Triplet]:
    """Finds the corpus texts that are nearest to each anchor and are not its positives.

    A text is excluded if it equals the anchor or one of the anchor's positives in `pairs` (ignoring
    case and white space). It is also excluded if its score with the anchor is not below `c −
    max(margin, relative_margin · |c|)`, where c is the score of the anchor and the pair's
    positive: such a text may be an unlabelled positive. The default is TopK-PercPos with 95 %, of
    NV-Retriever (arXiv 2407.15831).

    The score is the cosine of `encode`, or what a `guide` says. A guide is another model, better
    than the one to be trained, which decides what is a false negative; `encode` still chooses and
    orders the candidates. A negative can then be nearer to the anchor than the positive is.

    Each distinct text is encoded once. The memory is that of `encode`, twice the vectors, and one
    block of the search, for any number of pairs. A guide scores candidates until a pair has its
    negatives.

    Args:
        encode: Sentences → embeddings `[sentences, dim]`; a `VectorCache` is used directly.
        pairs: Anchor and positive; an anchor with several positives has several pairs.
        corpus: The texts to search for negatives; by default all positives.
        per_pair: Maximum number of negatives of a pair.
        rank_from: The first rank, from 1, among the nearest texts that are not positives. A higher
            number skips possible false negatives.
        rank_to: The last rank.
        margin: Minimum difference between the positive's score and the negative's, in `[0, 2]`.
        relative_margin: The same as a fraction of the positive's score, in `[0, 1]`; the larger
            difference is used.
        max_score: Largest score of a negative.
        min_score: Smallest score of a negative.
        guide: An encoder (`encode`; its prompts for queries and documents are used) or a
            `CrossEncoder` (`predict`); None: `encode` is its own guide.
        log: Called with each line of a report, such as `print`: how many negatives are missing,
            which rules left out how many texts, and the scores.

    Returns:
        Anchor, positive, negative: in the order of `pairs`, and the nearest negative first. A pair
        has fewer negatives, or none, if too few are within the ranks, margins and scores. For equal
        cosines, the earlier text of the corpus comes first.
    """
    if rank_from < 1 or rank_to < rank_from + per_pair - 1:
        ranks = f"received rank_from={rank_from}, rank_to={rank_to}"
        raise ValueError(f"per_pair={per_pair}: expected as many ranks from 1, {ranks}.")
    scored = None if guide is None else _pair_scores(guide)
    positive_scores = np.zeros(len(pairs), np.float32)
    negatives: list[list[str]] = [[] for _ in pairs]
    negative_scores: list[float] = []
    left_out: Counter[str] = Counter()
    for block in _candidates(encode, pairs, corpus, rank_from, rank_to):
        numbers = [*block]
        own = [score for score, _ in block.values()]
        if scored is not None:
            own = scored([pairs[number] for number in numbers])
        positive_scores[numbers] = own
        limits = positive_scores - np.maximum(margin, relative_margin * abs(positive_scores))
        waiting = {number: iter(texts) for number, (_, texts) in block.items()}
        while turn := [  # As many candidates as each pair still needs.
            (number, text, score)
            for number, texts in waiting.items()
            for text, score in islice(texts, per_pair - len(negatives[number]))
        ]:
            scores = [score for *_, score in turn]
            if scored is not None:
                scores = scored([(pairs[number][0], text) for number, text, _ in turn])
            for (number, text, _), score in zip(turn, scores, strict=True):
                if score >= limits[number]:
                    left_out["within the margin"] += 1
                elif not min_score <= score <= max_score:
                    left_out["beyond min_score or max_score"] += 1
                else:
                    negatives[number].append(text)
                    negative_scores.append(float(score))
    if log is not None:
        few = sum(len(texts) < per_pair for texts in negatives)
        missing = per_pair * len(pairs) - len(negative_scores)
        log(f"{len(pairs):,} pairs, {len(negative_scores):,} negatives")
        log(f"{few:,} pairs have fewer than {per_pair}; {missing:,} negatives are missing")
        log("left out: " + (", ".join(f"{n:,} {rule}" for rule, n in left_out.items()) or "none"))
        log(f"scores of the positives: {_spread(positive_scores)}")
        log(f"scores of the negatives: {_spread(negative_scores)}")
    return [(*pair, text) for pair, texts in zip(pairs, negatives, strict=True) for text in texts]


def _candidates(
    encode: Encode,
    pairs: Sequence[tuple[str, str]],
    corpus: Sequence[str] | None,
    rank_from: int,
    rank_to: int,
) -> Iterator[dict[int, Candidates]]:
    """Yields the candidates within the ranks, by the pair's number, for some anchors at a time."""
    distinct_texts: dict[str, str] = {}  # key → the first text that has it
    for text in [positive for _, positive in pairs] if corpus is None else corpus:
        distinct_texts.setdefault(text_key(text), text)
    keys, candidates = [*distinct_texts], [*distinct_texts.values()]
    texts = list(dict.fromkeys([*candidates, *(text for pair in pairs for text in pair)]))
    places = {text: place for place, text in enumerate(texts)}
    vectors = as_cache(encode)(texts)
    for start in range(0, len(vectors), _CHUNK):  # In parts: float64 doubles the memory.
        vectors[start : start + _CHUNK] = unit_rows(vectors[start : start + _CHUNK])
    left_out: dict[str, set[str]] = defaultdict(set)
    pairs_of: dict[int, list[int]] = defaultdict(list)
    for number, (anchor, positive) in enumerate(pairs):
        left_out[text_key(anchor)] |= {text_key(anchor), text_key(positive)}
        pairs_of[places[anchor]].append(number)
    anchors = [*pairs_of]
    for start in range(0, len(anchors), _CHUNK):
        chunk = anchors[start : start + _CHUNK]
        excluded = [left_out[text_key(texts[place])] for place in chunk]
        k = min(rank_to + max(map(len, excluded)), len(keys))
        scores, rows = exact_search(vectors[chunk], vectors[: len(keys)], k=k)
        block: dict[int, Candidates] = {}
        for line, place in enumerate(chunk):
            columns = [c for c in range(k) if keys[rows[line, c]] not in excluded[line]]
            near = [
                (candidates[rows[line, c]], scores[line, c])
                for c in columns[rank_from - 1 : rank_to]
            ]
            for number in pairs_of[place]:
                own = vectors[places[pairs[number][1]]]
                # Rounded to float32, as the search rounds.
                block[number] = np.float32(np.dot(vectors[place].astype(np.float64), own)), near
        yield block


def _pair_scores(guide: Any) -> PairScores:
    """The scores that a cross-encoder or an encoder gives to pairs."""
    if hasattr(guide, "predict"):
        return guide.predict
    queries = as_cache(getattr(guide, "encode_query", guide.encode))
    documents = as_cache(getattr(guide, "encode_document", guide.encode))

    def score(pairs: list[tuple[str, str]]) -> np.ndarray:
        first, second = zip(*pairs, strict=True)
        return cosine(queries(first), documents(second)).astype(np.float32)

    return score


def _spread(scores: Any) -> str:
    if not len(scores):
        return "none"
    quartiles = ", ".join(f"{q:.3f}" for q in np.quantile(scores, (0.25, 0.5, 0.75)))
    return f"mean {np.mean(scores):.3f}, quartiles {quartiles}"


def text_key(text: str) -> str:
    """Returns a key that is the same for texts that count as equal."""
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())
