"""The Word Embedding Association Test (WEAT), and SEAT, the same test on sentences.

WEAT: Caliskan, Bryson and Narayanan, "Semantics derived automatically from language corpora contain
human-like biases" (Science 356, 2017). SEAT: May et al., "On Measuring Social Biases in Sentence
Encoders", NAACL 2019. The test finds associations, but cannot exclude them: a high p does not show
that an encoder has no bias. A large effect size alone does not show an association either: over all
partitions of the same targets, d has a standard deviation of `√(2 / n)`, which is 0.5 for 8 targets
in a group.
"""

from __future__ import annotations

import itertools
import json
import math
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from use_st5.encode.similarity import unit_rows
from use_st5.encode.vector_store import Encode, as_cache
from use_st5.io.lines import batched
from use_st5.io.records import named_errors, read_record

# Every group of words once, with the study it comes from, and the tests that refer to the groups.
_WORD_LISTS = Path(__file__).with_name("word_lists.json")
_LIMIT = 2**24  # bytes of a file
# Cosines carry rounding errors of about 1e-16 times the square root of the dimension; statistics
# of two partitions that differ by less than this are tied.
TIE = 1e-12
# Numbers in a block of partitions or of resamples: limits the memory, however many there are.
BLOCK = 2**20


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
    """

    name: str
    x: tuple[str, ...]
    y: tuple[str, ...]
    a: tuple[str, ...]
    b: tuple[str, ...]
    categories: tuple[str, ...] = ("X", "Y", "A", "B")

    def __post_init__(self) -> None:
        groups = (self.x, self.y, self.a, self.b)
        sizes = dict(zip("xyab", map(len, groups), strict=True))
        if not all(sizes.values()) or sizes["x"] != sizes["y"]:
            expected = "expected texts in each group, and as many in x as in y"
            raise ValueError(f"{self.name}: {expected}, received {sizes}.")


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
    """
    groups = (test.x + test.y, test.a, test.b)
    texts = [text for group in groups for text in group]
    vectors = unit_rows(as_cache(encode)(texts))
    zero = ~vectors.any(axis=1)
    if zero.any():
        raise ValueError(f"encode: received a zero vector for {texts[int(zero.argmax())]!r}.")
    targets, a, b = np.split(vectors, np.cumsum([len(group) for group in groups[:2]]))
    # The mean of the cosines is the product with the mean.
    scores = targets @ (a.mean(axis=0) - b.mean(axis=0))
    x, y = np.split(scores, 2)
    # Separate random streams: the interval does not depend on whether p was sampled.
    for_partitions, for_interval = np.random.default_rng(seed).spawn(2)
    low, high = bootstrap_interval(x, y, ddof=ddof, resamples=resamples, generator=for_interval)
    count, partitions, exact = count_partitions(scores, samples, for_partitions)
    effect_size = float(effect_sizes(x, y, ddof))
    return WEATResult(effect_size, low, high, count / partitions, exact, partitions)


def effect_sizes(x: np.ndarray, y: np.ndarray, ddof: int) -> np.ndarray:
    """`(mean_x s − mean_y s) / std_{x ∪ y} s` of associations `[..., n]`; NaN if all are equal."""
    associations = np.concatenate([x, y], axis=-1)
    tied = np.ptp(associations, axis=-1) <= TIE
    spread = np.where(tied, np.nan, associations.std(axis=-1, ddof=ddof))
    return (x.mean(axis=-1) - y.mean(axis=-1)) / spread


def bootstrap_interval(
    x: np.ndarray, y: np.ndarray, *, ddof: int, resamples: int, generator: np.random.Generator
) -> tuple[float, float]:
    """The 2.5th and the 97.5th percentile of d over resampled targets `[n]`.

    Each resample draws n targets of x and, separately, n targets of y with replacement. Resamples
    without spread have no d and are left out. Both ends are NaN if a group has a single target, or
    if no resample has any spread.

    With few targets the interval is somewhat too short and too far from 0: with normally
    distributed s, it contains the true d in 91 % of the cases for n = 8 and in 93 % for n = 25; if
    d is above 1, in 86 % and 90 %.
    """
    from scipy import stats  # Imported only here: it takes a second.

    size = len(x)
    if size < 2:
        return np.nan, np.nan
    with warnings.catch_warnings():
        # Some resamples have no spread, which scipy's own interval cannot handle.
        warnings.simplefilter("ignore", stats.DegenerateDataWarning)
        values = stats.bootstrap(
            (x, y),
            lambda x, y, axis: effect_sizes(x, y, ddof),
            vectorized=True,
            method="percentile",
            n_resamples=resamples,
            batch=max(1, BLOCK // (2 * size)),
            rng=generator,
        ).bootstrap_distribution
    values = values[~np.isnan(values)]
    if not len(values):
        return np.nan, np.nan
    low, high = np.quantile(values, [(1 - 0.95) / 2, (1 + 0.95) / 2])
    return float(low), float(high)


def count_partitions(
    scores: np.ndarray, samples: int, generator: np.random.Generator
) -> tuple[int, int, bool]:
    """Counts the partitions whose statistic is at least the observed one.

    Sums over halves of `scores` `[2n]` (those of x, then those of y) order the partitions as the
    statistic does: it is twice the sum minus a constant. `scipy.stats.permutation_test` takes five
    times as long, and its tolerance misses ties at 0 that differ by rounding.

    Returns that number (ties included), the number of counted partitions, and whether these are all
    partitions.
    """
    size, block = len(scores) // 2, max(1, BLOCK // len(scores))
    partitions, least = math.comb(2 * size, size), scores[:size].sum() - TIE
    if partitions <= samples:
        blocks = batched(itertools.combinations(scores, size), block)
        count = sum(int((np.sum(halves, axis=1) >= least).sum()) for halves in blocks)
        return count, partitions, True
    count = 1  # the observed one
    for start in range(0, samples - 1, block):
        copies = np.tile(scores, (min(block, samples - 1 - start), 1))
        halves = generator.permuted(copies, axis=1)[:, :size]
        count += int((halves.sum(axis=1) >= least).sum())
    return count, samples, False


class _TextGroup(TypedDict):
    category: str
    examples: list[str]


def read_weat(path: str | Path) -> WEATTest:
    """Reads a test in the format of the sent-bias toolkit (May et al.).

    The test gets the name of the file. A file is one JSON object over several lines, even if its
    suffix is `.jsonl`. It maps each of "targ1", "targ2", "attr1" and "attr2" to {"category": text,
    "examples": list of texts}.

    A ValueError says if the file does not have this format.
    """
    names, remedy = ("targ1", "targ2", "attr1", "attr2"), "Give a file of the sent-bias toolkit."
    test = read_record(path, dict[str, _TextGroup], remedy=remedy, limit=_LIMIT)
    with named_errors(path, remedy):
        if missing := [name for name in names if name not in test]:
            raise ValueError(f"$: expected {', '.join(names)}, missing {', '.join(missing)}.")
        return _test(Path(path).stem, [test[name] for name in names], "examples")


def weat_tests() -> dict[str, WEATTest]:
    """The published tests on words: name → test, in the order of the papers' tables.

    "weat1" to "weat10" are those of Caliskan, Bryson and Narayanan (supplement). "weat3b" to
    "weat8b" are the variants of May et al., which replace names by terms or terms by names.
    """
    lists = json.loads(_WORD_LISTS.read_text(encoding="utf-8"))
    tests = {}
    for name, letters in lists["tests"].items():
        groups = [lists["groups"][letters[letter]] for letter in "xyab"]
        tests[name] = _test(name, groups, "words")
    return tests


def _test(name: str, groups: list[Any], texts: str) -> WEATTest:
    x, y, a, b = (tuple(group[texts]) for group in groups)
    return WEATTest(name, x, y, a, b, tuple(group["category"] for group in groups))
