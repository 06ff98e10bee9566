"""Counts of terms in bounded memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

import numpy as np

Term = TypeVar("Term", bound=Hashable)


class BoundedCounter(Generic[Term]):
    """Counts terms and keeps at most `max_terms` of them between two updates.

    When there are more, the count of the term at place `max_terms // 2 + 1` is subtracted from
    all counts, and terms whose count falls to zero are forgotten: the summary of Misra and Gries
    (1982), made for batches by Agarwal et al., "Mergeable Summaries" (2012). With N terms seen so
    far, for every term `counts[term] <= true count <= counts[term] + error` (`counts[term]` is 0
    for a forgotten one), and `error <= N / (max_terms // 2 + 1)`. Two terms that are never
    forgotten lose the same amount, so their order is correct. As long as no term was forgotten,
    the counts are exact.

    Args:
        max_terms: distinct terms to keep, at least 2; about 150 bytes each.

    Attributes:
        error: the total that was subtracted so far; the counts are exact while it is 0.

    Raises:
        ValueError: `max_terms` is less than 2.
    """

    def __init__(self, *, max_terms: int) -> None:
        if max_terms < 2:
            raise ValueError(f"Expected max_terms to be at least 2, received {max_terms}.")
        self.max_terms = max_terms
        self.error = 0
        self.counts: Counter[Term] = Counter()

    def update(self, terms: Iterable[Term]) -> None:
        """Counts a batch of terms."""
        self.counts.update(terms)
        if len(self.counts) > self.max_terms:
            self._prune()

    def _prune(self) -> None:
        """Subtracts one number from all counts so that at most half of the terms remain."""
        values = np.fromiter(self.counts.values(), dtype=np.int64, count=len(self.counts))
        place = len(values) - self.max_terms // 2 - 1
        subtracted = int(np.partition(values, place)[place])
        self.counts = Counter(
            {term: n - subtracted for term, n in self.counts.items() if n > subtracted}
        )
        self.error += subtracted
