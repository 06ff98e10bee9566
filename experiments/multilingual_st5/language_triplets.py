"""Premise, entailed and contradicting hypothesis, each of them in several languages."""

from __future__ import annotations

import logging
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

Mixing = Literal["different", "independent", "same"]

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

    Raises:
        ValueError: There are no triplets, or the languages have different numbers of triplets.
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

    def draw(self, *, mixing: Mixing = "different", seed: int = 0, epoch: int = 0) -> np.ndarray:
        """Draws the languages of an epoch, which depend only on the arguments.

        An epoch has every triplet once per language: XNLI's 130,899 triplets in 15 languages make
        the 1,963,485 of m-ST5's section 9.

        Args:
            mixing: "different": three different languages. "independent": each language is drawn
                independently. "same": one language, and every triplet once in each language.
            seed: Seed of the draw.
            epoch: Number of the epoch.

        Returns:
            int `[languages, triplets, 3]`, numbers in `languages`.

        Raises:
            ValueError: The mixing is unknown, or "different" with fewer than three languages.
        """
        count, rows = len(self.languages), len(self)
        generator = np.random.default_rng([seed, epoch])
        if mixing == "same":
            return np.broadcast_to(np.arange(count)[:, None, None], (count, rows, 3))
        if mixing == "independent":
            return generator.integers(count, size=(count, rows, 3))
        if mixing != "different":
            raise ValueError(
                f'Unknown mixing: {mixing!r}. Expected "different", "independent" or "same".'
            )
        if count < 3:
            raise ValueError(
                f"Three sentences in different languages need three, received {self.languages}. "
                'Use mixing="independent" or "same".'
            )
        # Each is drawn from the languages that are left; its number then skips those drawn before.
        first = generator.integers(count, size=(count, rows))
        second = generator.integers(count - 1, size=(count, rows))
        second += second >= first
        third = generator.integers(count - 2, size=(count, rows))
        for earlier_draw in np.sort([first, second], axis=0):
            third += third >= earlier_draw
        return np.stack([first, second, third], axis=-1)

    def examples(
        self, *, mixing: Mixing = "different", seed: int = 0, epoch: int = 0
    ) -> Iterator[dict[str, str]]:
        """An epoch's triplets with "anchor", "positive" and "negative"; arguments as for `draw`."""
        columns = [self.texts[language] for language in self.languages]
        for of_pass in self.draw(mixing=mixing, seed=seed, epoch=epoch):
            for row, languages in enumerate(of_pass):
                yield {
                    role: columns[language][row][place]
                    for place, (role, language) in enumerate(zip(_ROLES, languages, strict=True))
                }


def parallel_triplets(
    pairs: Mapping[str, Sequence[Mapping[str, Any]]], prompts: Sequence[Hashable] | None = None
) -> ParallelTriplets:
    """Makes triplets of inference pairs that are translations of each other, row by row.

    Pairs of the same prompt are joined: the k-th entailed hypothesis and the k-th contradicting one
    (m-ST5, section 9). A triplet with an empty text in any language is left out.

    Args:
        pairs: Language → "premise", "hypothesis" and "label" (0 entailment, 2 contradiction), as
            `NLIReader` gives them.
        prompts: A key for each row that identifies its prompt; by default the English premise, or
            that of the first language if there is no English.

    Raises:
        ValueError: The languages differ in number of rows or labels, or there are no triplets.
    """
    _check_parallel(pairs)
    first = pairs["en" if "en" in pairs else next(iter(pairs))]
    prompts = [pair["premise"] for pair in first] if prompts is None else prompts
    hypotheses: dict[Hashable, tuple[list[int], list[int]]] = {}
    for row, (prompt, pair) in enumerate(zip(prompts, first, strict=True)):
        if pair["label"] in (_ENTAILMENT, _CONTRADICTION):
            kinds = hypotheses.setdefault(prompt, ([], []))
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
    counts = {language: len(each) for language, each in pairs.items()}
    if len(set(counts.values())) != 1:
        raise ValueError(f"Expected as many rows in every language. Received: {counts}")
    first, *others = pairs
    for language in others:
        for row, (one, other) in enumerate(zip(pairs[first], pairs[language], strict=True)):
            if one["label"] != other["label"]:
                raise ValueError(
                    f"Expected rows that are translations of each other: row {row + 1} has the "
                    f"label {one['label']} in {first!r} and {other['label']} in {language!r}."
                )
