"""The Word Embedding Association Test (WEAT), and SEAT, the same test on sentences.

WEAT: Caliskan, Bryson and Narayanan, "Semantics derived automatically from language corpora contain
human-like biases" (Science 356, 2017). SEAT: May et al., "On Measuring Social Biases in Sentence
Encoders", NAACL 2019. The test finds associations, but cannot exclude them: a high p does not show
that an encoder has no bias. A large effect size alone does not show an association either: over all
partitions of the same targets, d has a standard deviation of `√(2 / n)`, which is 0.5 for 8 targets
in a group.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from use_st5.bias._statistics import bootstrap_interval, count_partitions, effect_sizes
from use_st5.encode.similarity import unit_rows
from use_st5.encode.vector_store import Encode, VectorCache, as_cache
from use_st5.io.records import read_record

# Every group of words once, with the study it comes from, and the tests that refer to the groups.
_WORD_LISTS = Path(__file__).with_name("word_lists.json")
_LIMIT = 2**24  # bytes of a file


@dataclass(frozen=True)
class WEATTest:
    """Two groups of target texts and two groups of attribute texts, named as in the paper.

    Attributes:
        name: For example "weat1".
        x: The first targets, for example flowers.
        y: The second targets, for example insects; as many as `x`.
        a: The attributes that are expected near `x`, for example pleasant words.
        b: The attributes that are expected near `y`; any number.
        categories: The categories of `x`, `y`, `a` and `b`, in this order.

    Raises:
        ValueError: A group is empty, or `x` and `y` differ in size.
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
    """The result of one test.

    Attributes:
        effect_size: Difference of the associations of `x` and `y`, in standard deviations; positive
            if `x` is nearer to `a`. NaN if all targets have the same association.
        effect_size_low: Lower end of its 95 % confidence interval, a percentile bootstrap over the
            targets. NaN if the effect size is NaN, or if a group has a single target.
        effect_size_high: Upper end of the interval.
        p_value: Share of the partitions whose statistic is at least the observed one; one-sided, in
            `(0, 1]`.
        exact: Whether all partitions were counted, instead of a sample.
        partitions: Number of counted partitions, including the observed one.
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
    """Tests whether `x` is nearer to `a`, and `y` nearer to `b`, than by chance.

    The association of a text w is `s(w) = mean_a cos(w, a) − mean_b cos(w, b)`. The effect size is
    `(mean_x s − mean_y s) / std_{x ∪ y} s`, and the statistic is `sum_x s − sum_y s`. p is the
    share of all partitions of `x ∪ y` into halves whose statistic is at least the observed one. The
    paper says "greater". Counting ties, like the code of sent-bias, is conservative and never gives
    0.

    The confidence interval shows how much the effect size would change with other targets of the
    same kind: `x` and `y` are resampled separately, and the attributes stay, as in the permutation
    test. The interval assumes independent texts. If several sentences contain the same word (SEAT),
    the interval is too narrow and p is too small.

    Args:
        encode: Texts → embeddings `[texts, dim]` in the same order; any object that `numpy.asarray`
            takes, or a `VectorCache`. Each distinct text is encoded once.
        test: The groups.
        ddof: The standard deviation divides by `2n − ddof`, with n texts in `x`: 1 as in the code
            of sent-bias, or 0. The paper does not specify it; the effect sizes differ by a factor
            of `√(2n / (2n − 1))`.
        samples: p is exact if there are at most this many partitions, `C(2n, n)`. Otherwise
            `samples − 1` random partitions and the observed one are counted.
        resamples: Number of resamples of the targets for the interval.
        seed: Seed of the random numbers.

    Raises:
        ValueError: `encode` returns another shape, numbers that are not finite, or a zero vector;
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
    # Separate random streams: the interval does not depend on whether p was sampled.
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
    """Reads a test in the format of the sent-bias toolkit (May et al.).

    The test gets the name of the file. A file is one JSON object over several lines, even if its
    suffix is `.jsonl`. It maps each of "targ1", "targ2", "attr1" and "attr2" to {"category": text,
    "examples": list of texts}.

    Raises:
        FileNotFoundError: The file does not exist.
        ValueError: The file does not have this format, or `WEATTest` refuses its groups.
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

    "weat1" to "weat10" are those of Caliskan, Bryson and Narayanan (supplement). "weat3b" to
    "weat8b" are the variants of May et al., which replace names by terms or terms by names.
    """
    lists = json.loads(_WORD_LISTS.read_text(encoding="utf-8"))
    tests = {}
    for name, letters in lists["tests"].items():
        groups = [lists["groups"][letters[letter]] for letter in "xyab"]
        x, y, a, b = (tuple(group["words"]) for group in groups)
        tests[name] = WEATTest(name, x, y, a, b, tuple(group["category"] for group in groups))
    return tests
