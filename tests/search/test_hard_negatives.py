from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest

from use_st5.encode.vector_store import VectorCache
from use_st5.search import hard_negatives, mine_hard_negatives

Encode = Callable[[list[str]], np.ndarray]


def on_a_circle(**degrees: float) -> Encode:
    """An encoder that places each text at its angle; the lengths of vectors must not matter."""

    def encode(texts: list[str]) -> np.ndarray:
        angles = [math.radians(degrees[text]) for text in texts]
        lengths = [1.0 + len(text) for text in texts]
        return np.array(
            [[r * math.cos(a), r * math.sin(a)] for a, r in zip(angles, lengths, strict=True)]
        )

    return encode


# The positive's cosine is 0.866; 95 % of it, 0.823, is at 34.6 degrees.
CIRCLE = on_a_circle(anchor=0, positive=30, same=29, close=-33, near=36, mid=-60, far=120)
CORPUS = ["far", "same", "mid", "near", "close", "positive", "anchor"]
PAIRS = [("anchor", "positive")]


def negatives(**options: object) -> list[str]:
    return [found[2] for found in mine_hard_negatives(CIRCLE, PAIRS, corpus=CORPUS, **options)]


def test_the_nearest_below_the_margin() -> None:
    mined = mine_hard_negatives(CIRCLE, PAIRS, corpus=CORPUS)
    assert mined == [("anchor", "positive", "near")]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"relative_margin": 0.0}, ["close", "near", "mid", "far"]),
        ({"relative_margin": 0.0, "margin": 0.02}, ["close", "near", "mid", "far"]),
        ({"relative_margin": 0.0, "margin": 0.04}, ["near", "mid", "far"]),
        ({"relative_margin": 0.3, "margin": 0.04}, ["mid", "far"]),
        ({"relative_margin": 0.05, "margin": 0.3}, ["mid", "far"]),
        ({"relative_margin": 0.0, "margin": 2.0}, []),
    ],
)
def test_the_greater_margin_holds(options: dict, expected: list[str]) -> None:
    assert negatives(per_pair=4, **options) == expected


@pytest.mark.parametrize(
    ("ranks", "expected"),
    [((1, 5), ["near", "mid", "far"]), ((4, 5), ["mid", "far"]), ((1, 3), ["near"])],
)
def test_ranks_count_what_is_too_near_but_no_positives(
    ranks: tuple[int, int], expected: list[str]
) -> None:
    # In the order of ranks: same, close, near, mid, far.
    found = negatives(per_pair=ranks[1] - ranks[0] + 1, rank_from=ranks[0], rank_to=ranks[1])
    assert found == expected


def test_a_positive_with_a_negative_cosine_keeps_its_margin() -> None:
    encode = on_a_circle(anchor=0, positive=120, just=121, beyond=140)
    mined = mine_hard_negatives(encode, PAIRS, corpus=["just", "beyond"], relative_margin=0.1)
    assert [negative for *_, negative in mined] == ["beyond"]


def test_equal_texts_are_no_negatives_whatever_their_case_and_space() -> None:
    angles = {"A cat": 0, "a  CAT ": 30, "Cats": 10, "cats": 40, "a dog": 50, "A DOG": 55}
    pairs = [("A cat", "Cats")]
    corpus = ["a  CAT ", "cats", "A DOG", "a dog"]
    mined = mine_hard_negatives(on_a_circle(**angles), pairs, corpus=corpus, per_pair=3)
    assert mined == [("A cat", "Cats", "A DOG")]


def test_each_pair_of_an_anchor_has_its_own_limit() -> None:
    encode = on_a_circle(anchor=0, strong=10, weak=80, between=40, beyond=-85)
    pairs = [("anchor", "weak"), ("anchor", "strong")]
    mined = mine_hard_negatives(encode, pairs, corpus=["between", "beyond"], per_pair=2)
    assert mined == [
        ("anchor", "weak", "beyond"),
        ("anchor", "strong", "between"),
        ("anchor", "strong", "beyond"),
    ]


def words(count: int, seed: int) -> list[str]:
    generator = np.random.default_rng(seed)
    return [f"{seed} {number}" for number in generator.integers(count, size=count)]


def hashed(texts: list[str]) -> np.ndarray:
    """Eight numbers that depend only on the text."""
    seeds = [[*text.encode()] for text in texts]
    return np.array([np.random.default_rng(seed).standard_normal(8) for seed in seeds], np.float32)


@pytest.mark.parametrize("margin", [0.0, 0.1])
def test_no_mined_text_is_a_positive_or_above_the_margin(
    margin: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hard_negatives, "_CHUNK", 7)  # several chunks
    pairs = list(dict.fromkeys(zip(words(60, 1), words(60, 2), strict=True)))
    mined = mine_hard_negatives(hashed, pairs, per_pair=3, margin=margin, relative_margin=0.0)
    assert len(mined) > 60
    assert not {(anchor, negative) for anchor, _, negative in mined} & set(pairs)
    anchor, positive, negative = (hashed(list(column)) for column in zip(*mined, strict=True))
    cosines = [
        np.sum(anchor * other, axis=1)
        / np.linalg.norm(anchor, axis=1)
        / np.linalg.norm(other, axis=1)
        for other in (positive, negative)
    ]
    assert np.all(cosines[1] <= cosines[0] - margin + 1e-6)
    for place, (first, second) in enumerate(pairwise(mined)):
        if first[:2] == second[:2]:  # negatives of one pair: none twice, the nearest first
            assert first[2] != second[2]
            assert cosines[1][place] >= cosines[1][place + 1] - 1e-6


def test_a_slow_peer_finds_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hard_negatives, "_CHUNK", 7)
    pairs = sorted(set(zip(words(60, 3), words(60, 4), strict=True)))
    corpus = sorted({positive for _, positive in pairs} | {anchor for anchor, _ in pairs})
    expected = []
    for anchor, positive in pairs:
        vectors = hashed([anchor, positive, *corpus]).astype(float)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        limit, *cosines = vectors[1:] @ vectors[0]
        near = sorted(zip(cosines, corpus, strict=True), key=lambda scored: -scored[0])
        known = {right for left, right in pairs if left == anchor} | {anchor}
        ranked = [scored for scored in near if scored[1] not in known][2:20]
        far = [text for cosine, text in ranked if cosine <= limit - 0.05 * abs(limit)]
        expected += [(anchor, positive, text) for text in far[:2]]
    mined = mine_hard_negatives(hashed, pairs, corpus=corpus, per_pair=2, rank_from=3, rank_to=20)
    assert mined == expected


def test_each_distinct_text_is_encoded_once_and_known_ones_not_at_all() -> None:
    calls: list[list[str]] = []

    def encode(texts: list[str]) -> np.ndarray:
        calls.append(texts)
        return CIRCLE(texts)

    embed = VectorCache(encode)
    for _ in range(2):
        mine_hard_negatives(embed, PAIRS * 3, corpus=CORPUS * 2)
    assert [sorted(call) for call in calls] == [sorted(CORPUS)]


def test_ranks_begin_at_1() -> None:
    with pytest.raises(ValueError, match="expected as many ranks from 1, received rank_from=0"):
        mine_hard_negatives(CIRCLE, PAIRS, rank_from=0)


def test_more_negatives_than_ranks() -> None:
    with pytest.raises(ValueError, match="per_pair=3: .* rank_from=2, rank_to=3"):
        mine_hard_negatives(CIRCLE, PAIRS, per_pair=3, rank_from=2, rank_to=3)


@pytest.mark.parametrize(
    ("scores", "expected"),
    # Their cosines: near 0.81, mid 0.5, far −0.5.
    [((0.7, 0.0), ["mid"]), ((0.5, -1.0), ["mid", "far"]), ((1.0, 0.6), ["near"])],
)
def test_a_window_of_scores(scores: tuple[float, float], expected: list[str]) -> None:
    assert negatives(per_pair=4, max_score=scores[0] + 1e-6, min_score=scores[1]) == expected


class Judge:
    """A cross-encoder that knows the answers of the anchor, and remembers what it was asked."""

    scores: ClassVar = {"positive": 0.9, "same": 0.95, "close": 0.1, "near": 0.86, "mid": 0.2}

    def __init__(self) -> None:
        self.asked: list[str] = []

    def predict(self, pairs: list[tuple[str, str]]) -> np.ndarray:
        assert {anchor for anchor, _ in pairs} == {"anchor"}
        self.asked += [text for _, text in pairs]
        return np.array([self.scores.get(text, 0.0) for _, text in pairs], np.float32)


def test_a_guide_says_what_is_a_false_negative() -> None:
    judge = Judge()
    # "close" is nearer to the anchor than the positive, "near" is within 5 % of its score.
    assert negatives(per_pair=2, guide=judge) == ["close", "mid"]
    assert judge.asked == ["positive", "same", "close", "near", "mid"]  # "far" is not needed
    assert negatives(guide=Judge(), margin=0.75) == ["close"]
    # The candidate that a guide finds as good as the positive is left out even without a margin.
    judge.scores = {**judge.scores, "close": 0.9}
    assert negatives(guide=judge, relative_margin=0.0) == ["near"]


def test_a_guide_may_be_an_encoder_with_prompts() -> None:
    angles = {"anchor": 0, "positive": 30, "same": 20, "close": 80, "near": 90}
    encode = on_a_circle(**{f"query: {text}": angle for text, angle in angles.items()}, **angles)
    guide = SimpleNamespace(
        encode=None,
        encode_query=lambda texts: encode([f"query: {text}" for text in texts]),
        encode_document=encode,
    )
    assert negatives(guide=guide) == ["close"]


def test_the_report() -> None:
    lines: list[str] = []
    pairs = [("anchor", "positive"), ("anchor", "mid")]
    mined = mine_hard_negatives(CIRCLE, pairs, corpus=CORPUS, per_pair=3, log=lines.append)
    assert len(mined) == 3 - 1 + 1  # near and far; far
    assert lines == [
        "2 pairs, 3 negatives",
        "2 pairs have fewer than 3; 3 negatives are missing",
        "left out: 5 within the margin",
        "scores of the positives: mean 0.683, quartiles 0.592, 0.683, 0.775",
        "scores of the negatives: mean -0.064, quartiles -0.500, -0.500, 0.155",
    ]


def test_the_other_library_mines_the_same() -> None:
    """Anchors with one positive: with several, it applies the lowest score to all of them."""
    datasets = pytest.importorskip("datasets", reason="the extra `peers` is not installed")
    sentence_transformers = pytest.importorskip("sentence_transformers")
    torch = pytest.importorskip("torch")
    from sentence_transformers.util import mine_hard_negatives as theirs

    class Module(torch.nn.Module):
        """The vectors of `hashed`."""

        modality = "text"

        def preprocess(self, texts: list[str], **_: object) -> dict:
            return {"vectors": torch.from_numpy(hashed(list(texts)))}

        tokenize = preprocess

        def forward(self, features: dict, **_: object) -> dict:
            return {**features, "sentence_embedding": features["vectors"]}

        def get_embedding_dimension(self) -> int:
            return 8

    model = sentence_transformers.SentenceTransformer(modules=[Module()], device="cpu")
    pairs = [(f"anchor {n}", f"positive {n}") for n in range(80)]
    options = {"relative_margin": 0.05, "max_score": 0.8}
    expected = theirs(
        datasets.Dataset.from_dict(dict(zip(("a", "p"), zip(*pairs, strict=True), strict=True))),
        model,
        num_negatives=3,
        range_max=79,
        verbose=False,
        **options,
    )
    mined = mine_hard_negatives(hashed, pairs, per_pair=3, rank_to=79, **options)
    assert mined == [tuple(row.values()) for row in expected]
