"""The examples of the task "related": sentences in groups, with the teacher's vectors and hints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from use_st5.recipes._hints import Hints
from use_st5.recipes._related_sentences import Length, Pair, related_groups
from use_st5.vector_store import VectorStore


class RelatedData:
    """Groups of related sentences of several lengths.

    Args:
        pairs: Length → sentences and their alterations.
        vectors: The teacher's vectors of all of them.
        hints: What its middle layer says of them.
    """

    def __init__(
        self, pairs: Mapping[Length, Sequence[Pair]], vectors: VectorStore, hints: Hints
    ) -> None:
        self._pairs = pairs
        self._vectors = vectors
        self._hints = hints

    def examples(self, length: Length) -> Iterator[dict[str, Any]]:
        """`{"sentence": str, "teacher": [dim], "hint": [dim]}`, one group after the other."""
        pairs = self._pairs[length]
        firsts = np.stack([self._vectors[first] for first, _ in pairs]).astype(np.float32)
        for group in related_groups(pairs, firsts):
            for each in group:
                yield {
                    "sentence": each,
                    "teacher": self._vectors[each],
                    "hint": self._hints[each],
                }
