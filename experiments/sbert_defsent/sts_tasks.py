"""STS by the source of the sentences and by the words that two sentences share.

Tsukagoshi, Sasano and Takeda, "Comparison and Combination of Sentence Embeddings Derived from
Different Supervision Signals" (*SEM 2022), sections 3.1 and 3.2, Table 1 and Figure 3.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from use_st5.data import DataFolder, DataSource
from use_st5.encode import VectorCache
from use_st5.evaluation import (
    STS_SOURCES,
    EvaluationTask,
    STSPair,
    STSSet,
    TaskContext,
    TaskResult,
    evaluate_sts,
    read_sts,
)

_YEARS = tuple(STS_SOURCES[f"STS{year}"] for year in (12, 13, 14, 15, 16))
_STSB = tuple(STS_SOURCES[f"STS-B {part}"] for part in ("train", "dev", "test"))
_FIFTHS = 5
# A word is the text between blanks, without punctuation at its ends: "U.S." is one word, and
# "guitar." is the word "guitar".
_WORD = re.compile(r"\w+(?:[^\w\s]+\w+)*")


def dice_coefficient(first: str, second: str) -> float:
    """The Dice coefficient `2·|A ∩ B| / (|A| + |B|)` of the sets of words of two sentences.

    The paper does not define a word. Only lower case without punctuation gives the coefficients of
    its Table 2. The value is in `[0, 1]`; it is 1 for two sentences without any word.
    """
    a, b = (set(_WORD.findall(sentence.lower())) for sentence in (first, second))
    return 2 * len(a & b) / (len(a) + len(b)) if a or b else 1.0


def fifths(embed: VectorCache, pairs: Sequence[STSPair]) -> list[dict[str, Any]]:
    """Scores an encoder on each fifth of the pairs, sorted by their Dice coefficients.

    Many pairs have equal coefficients; their order depends neither on the order of `pairs` nor on
    their genre. On the STS Benchmark, the order of the files would give correlations that differ by
    a few hundredths.
    """
    if len(pairs) < 2 * _FIFTHS:
        raise ValueError(f"pairs: expected at least {2 * _FIFTHS}, received {len(pairs)}.")
    ranked = sorted(pairs, key=lambda pair: (_dice(pair), _shuffled(pair)))
    bounds = [len(ranked) * part // _FIFTHS for part in range(_FIFTHS + 1)]
    results = []
    for start, end in itertools.pairwise(bounds):
        part = ranked[start:end]
        (score,) = evaluate_sts(embed, part)
        results.append(
            {
                "dice_from": _dice(part[0]),
                "dice_to": _dice(part[-1]),
                "pairs": len(part),
                "spearman": score.spearman["all"],
                "pearson": score.pearson["all"],
            }
        )
    return results


def _dice(pair: STSPair) -> float:
    return dice_coefficient(pair.first, pair.second)


def _shuffled(pair: STSPair) -> bytes:
    """A key that sorts pairs as if at random, but always in the same way."""
    return hashlib.sha256(repr(pair).encode()).digest()


def _score_sources(context: TaskContext, sets: Sequence[STSSet]) -> TaskResult:
    """One correlation for each source of sentences; 24 sources if all five sets are there."""
    by_source: dict[str, dict[str, Any]] = {}
    for data in sets:
        (score,) = evaluate_sts(context.embed, data)
        for subset, pairs in data.subsets.items():
            # The paper's Table 1 names the surprise sources of 2012 without that word.
            by_source[f"{data.name} {subset.removeprefix('surprise.')}"] = {
                "pairs": len(pairs),
                "spearman": score.spearman[subset],
                "pearson": score.pearson[subset],
            }
    scores = {
        f"{statistic}_mean": float(np.mean([each[statistic] for each in by_source.values()]))
        for statistic in ("spearman", "pearson")
    }
    counts = {
        "sources": len(by_source),
        "pairs": sum(each["pairs"] for each in by_source.values()),
    }
    return TaskResult("spearman_mean", scores, counts, {"sources": by_source})


def _score_by_dice(context: TaskContext, pairs: Sequence[STSPair]) -> TaskResult:
    """One correlation for each fifth of the Dice coefficient."""
    results = fifths(context.embed, pairs)
    scores = {f"spearman_q{number}": fifth["spearman"] for number, fifth in enumerate(results, 1)}
    return TaskResult(
        "spearman_mean",
        {"spearman_mean": float(np.mean([*scores.values()])), **scores},
        {"pairs": len(pairs)},
        {"quintiles": results},
    )


def _years_in(data: DataFolder) -> tuple[DataSource, ...]:
    """The sets of STS12 to STS16 in a data folder, which must have one of them."""
    years = tuple(source for source in _YEARS if data.has(source))
    if not years:
        data.find(_YEARS[0])
    return years


BY_SOURCE = EvaluationTask(
    "sts_sources",
    "sts",
    "STS12-16 by source",
    "Spearman's correlation of cosine similarity and gold scores for each source of STS12 to "
    "STS16, as in section 3.1 of Tsukagoshi et al. (*SEM 2022); mean: of the sources in the "
    "data folder, unweighted; the five sets have the 24 of the paper's Table 1",
    score=_score_sources,
    reader=lambda data: [read_sts(data, source) for source in _years_in(data)],
    read_files=_years_in,
)
BY_SHARED_WORDS = EvaluationTask(
    "sts_dice",
    "sts",
    "STS-B by shared words",
    "Spearman's correlation of cosine similarity and gold scores for each fifth of the STS "
    "Benchmark (training, development and test pairs together, as in section 3.2 of Tsukagoshi "
    "et al., *SEM 2022), sorted by the Dice coefficient of the pairs' word sets (lower case, "
    "no punctuation), ties in a fixed random order; q1 shares fewest words; mean: of the five. "
    "No held-out score for a model that was trained or chosen on STS-B",
    score=_score_by_dice,
    reader=lambda data: [pair for part in _STSB for pair in read_sts(data, part).pairs],
    sources=_STSB,
)
