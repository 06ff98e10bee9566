"""Premise, entailed and contradicting hypothesis, each of them in several languages."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

_ENTAILMENT, _CONTRADICTION = 0, 2
_ROLES = ("anchor", "positive", "negative")
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ParallelTriplets:
    """Triplets whose sentences exist in every language.

    `examples` mixes the languages as mSimCSE (Wang et al. 2022) and m-ST5 (arXiv 2403.17528,
    section 3 and Figure 2) do.

    Attributes:
        texts: Language → triplets (premise, entailed, contradicting), in the same order for all.
    """

    texts: Mapping[str, Sequence[tuple[str, str, str]]]

    def __post_init__(self) -> None:
        counts = {language: len(each) for language, each in self.texts.items()}
        if len(set(counts.values())) != 1 or 0 in counts.values():
            raise ValueError(
                f"Expected equally many triplets in all languages, at least one. Received: {counts}"
            )

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages; the numbers of `draw` are positions in this tuple."""
        return tuple(self.texts)

    def __len__(self) -> int:
        """Number of triplets in each language."""
        return len(self.texts[self.languages[0]])

    def draw(self, seed: int = 0) -> np.ndarray:
        """Draws three different languages for each triplet, once per language for every triplet.

        XNLI's 130,899 triplets in 15 languages make the 1,963,485 of m-ST5's section 9.

        Args:
            seed: Seed of the draw.

        Returns:
            int `[languages, triplets, 3]`, numbers in `languages`.
        """
        count, rows = len(self.languages), len(self)
        if count < 3:
            raise ValueError(
                "Expected at least three languages, since the three sentences of a triplet are in "
                f"different ones. Received: {self.languages}"
            )
        generator = np.random.default_rng([seed, 0])  # 0: the first epoch, as in prepared arrays
        # Each is drawn from the languages that are left; its number then skips those drawn before.
        first = generator.integers(count, size=(count, rows))
        second = generator.integers(count - 1, size=(count, rows))
        second += second >= first
        third = generator.integers(count - 2, size=(count, rows))
        for earlier_draw in np.sort([first, second], axis=0):
            third += third >= earlier_draw
        return np.stack([first, second, third], axis=-1)

    def examples(self, seed: int = 0) -> Iterator[dict[str, str]]:
        """The triplets of `draw` with "anchor", "positive" and "negative"."""
        columns = [self.texts[language] for language in self.languages]
        for of_pass in self.draw(seed):
            for row, languages in enumerate(of_pass):
                yield {
                    role: columns[language][row][place]
                    for place, (role, language) in enumerate(zip(_ROLES, languages, strict=True))
                }


def parallel_triplets(pairs: Mapping[str, Sequence[Mapping[str, Any]]]) -> ParallelTriplets:
    """Makes triplets of inference pairs that are translations of each other, row by row.

    Pairs of the same premise are joined: the k-th entailed hypothesis and the k-th contradicting
    one (m-ST5, section 9). The premise is the English one, or that of the first language if there
    is no English. A triplet with an empty text in any language is left out.

    Args:
        pairs: Language → "premise", "hypothesis" and "label" (0 entailment, 2 contradiction), as
            `nli_pairs` gives them.
    """
    _check_parallel(pairs)
    first = pairs["en" if "en" in pairs else next(iter(pairs))]
    hypotheses: dict[str, tuple[list[int], list[int]]] = {}
    for row, pair in enumerate(first):
        if pair["label"] in (_ENTAILMENT, _CONTRADICTION):
            kinds = hypotheses.setdefault(pair["premise"], ([], []))
            kinds[pair["label"] == _CONTRADICTION].append(row)
    rows = [
        (entailed, contradicting)
        for kinds in hypotheses.values()
        for entailed, contradicting in zip(*kinds, strict=False)
    ]
    texts = {language: [_texts(each, *two) for two in rows] for language, each in pairs.items()}
    complete = [all(all(texts[language][n]) for language in texts) for n in range(len(rows))]
    if left_out := complete.count(False):
        _log.warning("left out %d triplets that lack a text in some language", left_out)
    return ParallelTriplets(
        {
            language: [triplet for triplet, good in zip(each, complete, strict=True) if good]
            for language, each in texts.items()
        }
    )


def _texts(
    pairs: Sequence[Mapping[str, Any]], entailed: int, contradicting: int
) -> tuple[str, str, str]:
    positive = pairs[entailed]
    return positive["premise"], positive["hypothesis"], pairs[contradicting]["hypothesis"]


def _check_parallel(pairs: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    first, *others = pairs
    for language in others:
        for row, (one, other) in enumerate(zip(pairs[first], pairs[language], strict=True)):
            if one["label"] != other["label"]:
                raise ValueError(
                    f"Expected rows that are translations of each other: row {row + 1} has the "
                    f"label {one['label']} in {first!r} and {other['label']} in {language!r}."
                )
