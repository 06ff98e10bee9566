"""The Word Embedding Association Test: are two groups of texts associated with different things?

Caliskan, Bryson and Narayanan, "Semantics derived automatically from language corpora contain
human-like biases" (Science 356, 2017). The same test on sentences made of the words is SEAT (May et
al., "On Measuring Social Biases in Sentence Encoders", NAACL 2019). A high p does not show that an
encoder is free of bias: the test finds associations, it cannot rule them out. Nor does an effect
size far from 0 by itself show an association: over all partitions of the same targets d has a
standard deviation of `√(2 / n)`, which is 0.5 for 8 targets in a group.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from use_st5._vectors import unit_rows
from use_st5.bias._effect_size import bootstrap_interval, effect_sizes
from use_st5.bias._partitions import count_partitions
from use_st5.bias.weat_result import WEATResult
from use_st5.bias.weat_test import WEATTest
from use_st5.vector_store import Encode, VectorCache, as_cache


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
