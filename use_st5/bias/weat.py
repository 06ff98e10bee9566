"""The Word Embedding Association Test: are two groups of texts associated with different things?

Caliskan, Bryson and Narayanan, "Semantics derived automatically from language corpora contain
human-like biases" (Science 356, 2017). The same test on sentences made of the words is SEAT (May et
al., "On Measuring Social Biases in Sentence Encoders", NAACL 2019). A high p does not show that an
encoder is free of bias: the test finds associations, it cannot rule them out. Nor does an effect
size far from 0 by itself show an association: over all partitions of the same targets d has a
standard deviation of `√(2 / n)`, which is 0.5 for 8 targets in a group.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from use_st5._records import read_record
from use_st5._vectors import unit_rows
from use_st5.bias._statistics import bootstrap_interval, count_partitions, effect_sizes
from use_st5.vector_store import Encode, VectorCache, as_cache

# Every group of words once, with the study it comes from, and the tests that refer to the groups.
_WORD_LISTS = Path(__file__).with_name("word_lists.json")
_LIMIT = 2**24  # bytes of a file


@dataclass(frozen=True)
class WEATTest:
    """Two groups of target texts and two groups of attribute texts, by the paper's letters.

    Attributes:
        name: For example "weat1".
        x: The first targets, for example flowers.
        y: The second targets, for example insects; as many as `x`.
        a: The attributes that `x` is expected to be near to, for example pleasant words.
        b: The attributes that `y` is expected to be near to; any number.
        categories: What `x`, `y`, `a` and `b` are, in this order.

    Raises:
        ValueError: A group is empty; `x` and `y` differ in number.
    """

    name: str
    x: tuple[str, ...]
    y: tuple[str, ...]
    a: tuple[str, ...]
    b: tuple[str, ...]
    categories: tuple[str, ...] = ("X", "Y", "A", "B")

    def __post_init__(self) -> None:
        groups = (self.x, self.y, self.a, self.b)
        if empty := [name for name, group in zip("xyab", groups, strict=True) if not group]:
            raise ValueError(
                f"{self.name}: expected texts in each group, received none in {empty}."
            )
        if len(self.x) != len(self.y):
            raise ValueError(
                f"{self.name}: expected as many texts in x as in y, received {len(self.x)} and "
                f"{len(self.y)}; leave some of the larger group out."
            )


@dataclass(frozen=True)
class WEATResult:
    """The outcome of one test.

    Attributes:
        effect_size: How far apart the associations of `x` and `y` are, in standard deviations;
            positive where `x` is nearer to `a`. NaN where all targets are associated alike.
        effect_size_low: Lower end of its 95 % confidence interval, a percentile bootstrap over the
            targets. NaN where the effect size is, or where a group has a single target.
        effect_size_high: Upper end of the interval.
        p_value: Share of the partitions whose statistic is at least the observed one; one-sided,
            in `(0, 1]`.
        exact: Whether all partitions were counted, not a sample.
        partitions: How many were counted, the observed one among them.
    """

    effect_size: float
    effect_size_low: float
    effect_size_high: float
    p_value: float
    exact: bool
    partitions: int


def run_weat(
    encode: Encode,
    test: WEATTest,
    *,
    ddof: int = 1,
    samples: int = 100_000,
    resamples: int = 10_000,
    seed: int = 0,
) -> WEATResult:
    """Tests whether `x` is nearer to `a`, and `y` to `b`, than chance would have it.

    The association of a text w is `s(w) = mean_a cos(w, a) − mean_b cos(w, b)`, the effect size
    `(mean_x s − mean_y s) / std_{x ∪ y} s`, the statistic `sum_x s − sum_y s`. p is the share of
    all partitions of `x ∪ y` into halves whose statistic is at least the observed one. The paper
    says "greater"; counting ties, as the sent-bias code does, is conservative and never gives 0.

    The confidence interval says how far the effect size would move with other targets of the same
    kind: x and y are resampled, each within itself; the attributes stay, as they do in the
    permutation test. It takes texts to be drawn independently, so it is too narrow, as p is too
    small, where several sentences hold the same word (SEAT).

    Args:
        encode: Texts → embeddings `[texts, dim]`, rows in the same order; any object that
            `numpy.asarray` takes, or a `VectorCache`. Each distinct text is encoded once.
        test: The groups.
        ddof: The standard deviation divides by `2n − ddof`, n texts in `x`: 1 as in the sent-bias
            code, or 0. The paper does not say; the two differ by a factor of `√(2n / (2n − 1))`.
        samples: p is exact if there are at most so many partitions, `C(2n, n)`. Otherwise
            `samples − 1` are drawn at random and the observed one is counted with them.
        resamples: How many times the targets are resampled for the interval.
        seed: Of the draws.

    Raises:
        ValueError: `encode` gives another shape, numbers that are not finite or a zero vector;
            `ddof` is not in `[0, 2n)`; `samples` or `resamples` is below 1.
    """
    size = len(test.x)
    if not 0 <= ddof < 2 * size:
        raise ValueError(f"ddof: expected 0 to {2 * size - 1} for {size} targets, received {ddof}.")
    for name, value in (("samples", samples), ("resamples", resamples)):
        if value < 1:
            raise ValueError(f"{name}: expected at least 1, received {value}.")
    scores = _associations(as_cache(encode), test)
    x, y = scores[:size], scores[size:]
    # Streams of their own: the interval does not depend on whether p was sampled.
    for_partitions, for_interval = np.random.default_rng(seed).spawn(2)
    low, high = bootstrap_interval(x, y, ddof=ddof, resamples=resamples, generator=for_interval)
    count, partitions, exact = count_partitions(scores, samples, for_partitions)
    effect_size = float(effect_sizes(x, y, ddof))
    return WEATResult(effect_size, low, high, count / partitions, exact, partitions)


def _associations(embed: VectorCache, test: WEATTest) -> np.ndarray:
    """The association s of each target, `[2n]`: those of x, then those of y."""
    groups = (test.x + test.y, test.a, test.b)
    vectors = _unit_vectors(embed, [text for group in groups for text in group])
    targets, a, b = np.split(vectors, np.cumsum([len(group) for group in groups[:2]]))
    # The mean of the cosines is the product with the mean.
    return targets @ (a.mean(axis=0) - b.mean(axis=0))


def _unit_vectors(embed: VectorCache, texts: Sequence[str]) -> np.ndarray:
    """The directions of the embeddings, float64 `[texts, dim]`."""
    vectors = unit_rows(embed(texts))
    zero = ~vectors.any(axis=1)
    if zero.any():
        raise ValueError(
            "encode: expected vectors other than zero, received a zero vector for "
            f"{texts[int(zero.argmax())]!r}."
        )
    return vectors


class _ListedGroup(msgspec.Struct):
    category: str
    examples: list[str]


class _ListedTest(msgspec.Struct):
    targ1: _ListedGroup
    targ2: _ListedGroup
    attr1: _ListedGroup
    attr2: _ListedGroup


def read_weat(path: str | Path) -> WEATTest:
    """Reads a test in the format of the sent-bias toolkit (May et al.); its name is the file's.

    In spite of its ending, `.jsonl`, a file is one JSON object, over many lines: each of "targ1",
    "targ2", "attr1" and "attr2" → {"category": text, "examples": list of texts}.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file is not in the format, or `WEATTest` refuses its groups.
    """
    path = Path(path)
    remedy = "Give a file of the sent-bias toolkit."
    test = read_record(path, _ListedTest, remedy=remedy, limit=_LIMIT)
    groups = (test.targ1, test.targ2, test.attr1, test.attr2)
    x, y, a, b = (tuple(group.examples) for group in groups)
    try:
        return WEATTest(path.stem, x, y, a, b, tuple(group.category for group in groups))
    except ValueError as error:
        raise ValueError(f"{path}: {error} {remedy}") from error


def weat_tests() -> dict[str, WEATTest]:
    """The published tests on words: name → test, in the order of the papers' tables.

    Those of Caliskan, Bryson and Narayanan (supplement), "weat1" to "weat10", and the variants of
    May et al., "weat3b" to "weat8b", which put terms in the place of names or names in the place of
    terms.
    """
    lists = json.loads(_WORD_LISTS.read_text(encoding="utf-8"))
    tests = {}
    for name, letters in lists["tests"].items():
        groups = [lists["groups"][letters[letter]] for letter in "xyab"]
        x, y, a, b = (tuple(group["words"]) for group in groups)
        tests[name] = WEATTest(name, x, y, a, b, tuple(group["category"] for group in groups))
    return tests
