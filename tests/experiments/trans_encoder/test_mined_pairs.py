from __future__ import annotations

import numpy as np
import pytest

from experiments.trans_encoder.mined_pairs import mined_pairs

TEXTS = ["a", "b", "c", "d", "e"]
# The lengths differ; b and c point in the same direction, and so do d and e.
VECTORS = np.array([[1, 0, 0], [0, 1, 0.1], [0, 5, 0], [0, 0, 1], [0.1, 0, 9]])


def test_neighbours_are_by_the_cosine_and_no_pair_is_there_twice() -> None:
    pairs = mined_pairs(TEXTS, VECTORS, neighbours=1, others=0)
    assert ("b", "c") in pairs
    assert ("d", "e") in pairs
    assert len({frozenset(pair) for pair in pairs}) == len(pairs)
    assert ("c", "b") not in pairs


def test_others_are_drawn_from_all_but_the_sentence_itself() -> None:
    texts = [str(number) for number in range(200)]
    vectors = np.random.default_rng(0).standard_normal((200, 4))
    pairs = mined_pairs(texts, vectors, neighbours=0, others=3)
    assert all(first != second for first, second in pairs)
    assert 500 < len(pairs) <= 600
    # Partners are drawn evenly: apart from chance, their mean is that of all sentences.
    assert abs(np.mean([int(second) for _, second in pairs]) - 99.5) < 10
    assert pairs == mined_pairs(texts, vectors, neighbours=0, others=3)
    assert pairs != mined_pairs(texts, vectors, neighbours=0, others=3, seed=1)


def test_equal_sentences_are_one() -> None:
    pairs = mined_pairs(["a", "a", "b", "a"], VECTORS[:4], neighbours=1, others=1)
    assert pairs == [("a", "b")]


@pytest.mark.parametrize(
    ("texts", "options", "said"),
    [
        (TEXTS, {"neighbours": 5}, "more than 5 different sentences"),
        (["a", "a", "a", "a", "a"], {}, "received 1"),
        (TEXTS, {"others": -1}, "Expected more than"),
        (TEXTS[:4], {}, "Expected 4 vectors, received 5"),
    ],
)
def test_what_does_not_fit_is_refused(texts: list[str], options: dict, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        mined_pairs(texts, VECTORS, **options)
