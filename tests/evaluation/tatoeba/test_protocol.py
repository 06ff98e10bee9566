from __future__ import annotations

import numpy as np
import pytest

from use_st5.evaluation.tatoeba.protocol import evaluate_tatoeba
from use_st5.evaluation.tatoeba.readers import ParallelSentences

VECTORS = {
    "un": [1.0, 0.0],
    "deux": [2.0, 2.0],
    "trois": [0.0, 0.5],
    "one": [3.0, 0.0],
    "two": [0.1, 1.0],
    "three": [0.2, 1.0],
}


def encode(sentences: list[str]) -> np.ndarray:
    return np.array([VECTORS[sentence] for sentence in sentences])


def test_by_hand() -> None:
    """deux, at 45 degrees, is nearest to three; trois, at 90, to two; un to one.

    The other way round one finds un, two and three find trois: two thirds and one third are right.
    """
    sentences = ParallelSentences("fra", ["un", "deux", "trois"], ["one", "two", "three"])
    score = evaluate_tatoeba(encode, [sentences])["fra"]
    assert (score.pairs, score.to_english, score.from_english) == (3, 1 / 3, 2 / 3)
    assert score.mean == pytest.approx(0.5)


def test_of_a_sentence_on_two_lines_the_first_is_found() -> None:
    sentences = ParallelSentences("fra", ["un", "trois", "un"], ["one", "three", "one"])
    score = evaluate_tatoeba(encode, [sentences])["fra"]
    assert (score.to_english, score.from_english) == (2 / 3, 2 / 3)


def test_the_order_of_the_pairs_and_the_lengths_of_vectors_change_nothing() -> None:
    generator = np.random.default_rng(3)
    vectors = dict(zip(map(str, range(60)), generator.standard_normal((60, 5)), strict=True))
    pairs = np.array([*vectors]).reshape(2, 30)

    def score(pairs: np.ndarray, factor: float) -> tuple[float, float]:
        foreign, english = pairs.tolist()
        scores = evaluate_tatoeba(
            lambda sentences: np.array([vectors[sentence] * factor for sentence in sentences]),
            [ParallelSentences("xho", foreign, english)],
        )
        return scores["xho"].to_english, scores["xho"].from_english

    assert score(pairs, 1.0) == score(pairs[:, generator.permutation(30)], 7.0)
    assert score(pairs[::-1], 1.0) == score(pairs, 1.0)[::-1]


def test_every_language_has_its_score() -> None:
    languages = [
        ParallelSentences("deu", ["un"], ["one"]),
        ParallelSentences("nld", ["un"], ["two"]),
    ]
    assert list(evaluate_tatoeba(encode, languages)) == ["deu", "nld"]


def test_no_sentences() -> None:
    with pytest.raises(ValueError, match="Expected sentences to embed, received none"):
        evaluate_tatoeba(encode, [ParallelSentences("deu", [], [])])
