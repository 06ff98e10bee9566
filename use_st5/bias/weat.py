"""The Word Embedding Association Test: are two groups of texts associated with different things?

Caliskan, Bryson and Narayanan, "Semantics derived automatically from language corpora contain
human-like biases" (Science 356, 2017). The same test on sentences made of the words is SEAT (May et
al., "On Measuring Social Biases in Sentence Encoders", NAACL 2019). A high p does not show that an
encoder is free of bias: the test finds associations, it cannot rule them out.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["WEATResult", "WEATTest", "read_weat", "run_weat"]

Encode = Callable[[list[str]], Any]

# Cosines carry rounding errors of about 1e-16 times the square root of the dimension; statistics
# of two partitions that differ by less than this are tied.
_TIE = 1e-12
# Numbers in a block of partitions: bounds the memory at any number of samples.
_BLOCK = 2**20


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
    categories: tuple[str, str, str, str] = ("X", "Y", "A", "B")

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
        p_value: Share of the partitions whose statistic is at least the observed one; one-sided,
            in `(0, 1]`.
        exact: Whether all partitions were counted, not a sample.
        partitions: How many were counted, the observed one among them.
    """

    effect_size: float
    p_value: float
    exact: bool
    partitions: int


def read_weat(path: str | Path) -> WEATTest:
    """Reads a test in the format of the sent-bias toolkit (May et al.); its name is the file's.

    In spite of its ending, `.jsonl`, a file is one JSON object, over many lines: each of "targ1",
    "targ2", "attr1" and "attr2" → {"category": text, "examples": list of texts}.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file is not in the format, or `WEATTest` refuses its groups.
    """
    path = Path(path)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        parts = [content[key] for key in ("targ1", "targ2", "attr1", "attr2")]
        categories = tuple(part["category"] for part in parts)
        groups = [tuple(part["examples"]) for part in parts]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"{path}: expected one JSON object with targ1, targ2, attr1 and attr2, each with a "
            f"category and examples; received another content ({type(error).__name__}: {error})."
        ) from error
    return WEATTest(path.stem, *groups, categories=categories)


def run_weat(
    encode: Encode, test: WEATTest, *, ddof: int = 1, samples: int = 100_000, seed: int = 0
) -> WEATResult:
    """Tests whether `x` is nearer to `a`, and `y` to `b`, than chance would have it.

    The association of a text w is `s(w) = mean_a cos(w, a) − mean_b cos(w, b)`, the effect size
    `(mean_x s − mean_y s) / std_{x ∪ y} s`, the statistic `sum_x s − sum_y s`. p is the share of
    all partitions of `x ∪ y` into halves whose statistic is at least the observed one. The paper
    says "greater"; counting ties, as the sent-bias code does, is conservative and never gives 0.

    Args:
        encode: Texts → embeddings `[texts, dim]`, rows in the same order; any object that
            `numpy.asarray` takes. It is called once with all distinct texts.
        test: The groups.
        ddof: The standard deviation divides by `2n − ddof`, n texts in `x`: 1 as in the sent-bias
            code, or 0. The paper does not say; the two differ by a factor of `√(2n / (2n − 1))`.
        samples: p is exact if there are at most so many partitions, `C(2n, n)`. Otherwise
            `samples − 1` are drawn at random and the observed one is counted with them.
        seed: Of the draws.

    Raises:
        ValueError: `encode` gives another shape, numbers that are not finite or a zero vector;
            `ddof` is not in `[0, 2n)`; `samples` is below 1.
    """
    size = len(test.x)
    if not 0 <= ddof < 2 * size:
        raise ValueError(f"ddof: expected 0 to {2 * size - 1} for {size} targets, received {ddof}.")
    if samples < 1:
        raise ValueError(f"samples: expected at least 1, received {samples}.")
    scores = _associations(encode, test)
    spread = scores.std(ddof=ddof) if np.ptp(scores) > _TIE else math.nan
    effect_size = (scores[:size].mean() - scores[size:].mean()) / spread
    partitions = math.comb(2 * size, size)
    exact = partitions <= samples
    if exact:
        count = _count(_all_sums(scores), scores)
    else:
        partitions = samples
        count = 1 + _count(_drawn_sums(scores, samples - 1, seed), scores)
    return WEATResult(float(effect_size), count / partitions, exact, partitions)


def _associations(encode: Encode, test: WEATTest) -> np.ndarray:
    """The association s of each target, `[2n]`: those of x, then those of y."""
    texts = list(dict.fromkeys(test.x + test.y + test.a + test.b))
    rows = dict(zip(texts, _unit_vectors(encode, texts), strict=True))
    targets = np.stack([rows[text] for text in test.x + test.y])
    a, b = (np.mean([rows[text] for text in group], axis=0) for group in (test.a, test.b))
    return targets @ (a - b)  # the mean of cosines is the cosine product with the mean


def _unit_vectors(encode: Encode, texts: list[str]) -> np.ndarray:
    """The directions of the embeddings, float64 `[texts, dim]`."""
    vectors = np.asarray(encode(texts), dtype=np.float64)
    if vectors.ndim != 2 or len(vectors) != len(texts):
        raise ValueError(
            f"encode: expected an array of shape [{len(texts)}, dim], received {vectors.shape}."
        )
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    good = (np.isfinite(lengths) & (lengths > 0))[:, 0]
    if not good.all():
        raise ValueError(
            "encode: expected finite vectors other than zero, received "
            f"{'a zero vector' if lengths[good.argmin()] == 0 else 'NaN or infinity'} for "
            f"{texts[good.argmin()]!r}."
        )
    return vectors / lengths


def _count(blocks: Iterator[np.ndarray], scores: np.ndarray) -> int:
    """How many sums over halves are at least that of x.

    They order the partitions as the statistic does: it is twice the sum minus a constant.
    """
    observed = scores[: len(scores) // 2].sum()
    return sum(int((sums >= observed - _TIE).sum()) for sums in blocks)


def _all_sums(scores: np.ndarray) -> Iterator[np.ndarray]:
    """Sums of the scores over each half of the targets once, in blocks."""
    halves = itertools.combinations(scores, len(scores) // 2)
    while block := list(itertools.islice(halves, max(1, _BLOCK // len(scores)))):
        yield np.sum(block, axis=1)


def _drawn_sums(scores: np.ndarray, draws: int, seed: int) -> Iterator[np.ndarray]:
    """Sums of the scores over halves drawn at random, in blocks."""
    generator = np.random.default_rng(seed)
    block = max(1, _BLOCK // len(scores))
    for start in range(0, draws, block):
        copies = np.tile(scores, (min(block, draws - start), 1))
        yield generator.permuted(copies, axis=1)[:, : len(scores) // 2].sum(axis=1)
