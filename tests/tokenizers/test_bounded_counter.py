from __future__ import annotations

import random
from collections import Counter

import pytest

from use_st5.tokenizers.bounded_counter import BoundedCounter


def test_exact_while_the_terms_fit() -> None:
    counter = BoundedCounter(max_terms=3)
    for batch in ("abca", "cc", ""):
        counter.update(batch)
    assert counter.counts == Counter("abcacc")
    assert counter.error == 0


def test_by_hand() -> None:
    counter = BoundedCounter(max_terms=4)
    counter.update("aaaaabbbbccde")  # a 5, b 4, c 2, d 1, e 1: the third count is subtracted
    assert counter.counts == {"a": 3, "b": 2}
    assert counter.error == 2


@pytest.mark.parametrize("seed", range(5))
def test_counts_are_within_the_bound(seed: int) -> None:
    generator = random.Random(seed)
    terms = [int(generator.paretovariate(0.6)) for _ in range(20_000)]
    counter = BoundedCounter(max_terms=100)
    for start in range(0, len(terms), 50):
        counter.update(terms[start : start + 50])
        assert len(counter.counts) <= 100
        assert counter.error <= (start + 50) / 51
    true = Counter(terms)
    assert counter.error > 0
    for term, count in true.items():
        assert counter.counts[term] <= count <= counter.counts[term] + counter.error
    assert [term for term, _ in counter.counts.most_common(5)] == [
        term for term, _ in true.most_common(5)
    ]


def test_too_small_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 2, received 1"):
        BoundedCounter(max_terms=1)
