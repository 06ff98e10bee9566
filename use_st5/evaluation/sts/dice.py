"""Sentence pairs partitioned by superficial similarity.

Tsukagoshi, Sasano and Takeda, "Comparison and Combination of Sentence Embeddings Derived from
Different Supervision Signals" (*SEM 2022), section 3.2 and Figure 3.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Sequence

from use_st5.evaluation.sts.dice_quintile import DiceQuintile
from use_st5.evaluation.sts.protocol import evaluate_sts
from use_st5.evaluation.sts.sts_pair import STSPair
from use_st5.vector_store import Encode, VectorCache, as_cache

_PARTS = 5
# What stands between blanks, without punctuation at its ends: "U.S." is one word, "guitar." no
# other than "guitar".
_WORD = re.compile(r"\w+(?:[^\w\s]+\w+)*")


def dice_coefficient(first: str, second: str) -> float:
    """The Dice coefficient `2·|A ∩ B| / (|A| + |B|)` of the sets of words of two sentences.

    The paper does not say what a word is. The coefficients of its Table 2 come out with lower case
    and without punctuation, which is what is done here, and not otherwise.

    Returns:
        A number in `[0, 1]`; 1 for two sentences without any word.
    """
    a, b = (set(_WORD.findall(sentence.lower())) for sentence in (first, second))
    return 2 * len(a & b) / (len(a) + len(b)) if a or b else 1.0


def evaluate_by_dice(encode: Encode, pairs: Sequence[STSPair]) -> list[DiceQuintile]:
    """Scores an encoder on each fifth of the pairs, sorted by their Dice coefficients.

    Fifths differ by at most one pair. Pairs of equal coefficients, of which there are many, are
    put in an order that depends neither on the order given nor on their genre; on the STS Benchmark
    the order of the files gives correlations that differ by a few hundredths.

    Args:
        encode: Sentences → embeddings `[sentences, dim]`, rows in the same order.
        pairs: At least ten; in the paper all splits of the STS Benchmark.

    Returns:
        The quintiles, from few shared words to many.

    Raises:
        ValueError: Too few pairs; `encode` gives another shape or numbers that are not finite.
    """
    if len(pairs) < 2 * _PARTS:
        raise ValueError(f"pairs: expected at least {2 * _PARTS}, received {len(pairs)}.")
    embed = as_cache(encode)
    ranked = sorted(pairs, key=lambda pair: (_dice(pair), _shuffled(pair)))
    bounds = [len(ranked) * part // _PARTS for part in range(_PARTS + 1)]
    return [_quintile(embed, ranked[start:end]) for start, end in itertools.pairwise(bounds)]


def _quintile(embed: VectorCache, pairs: list[STSPair]) -> DiceQuintile:
    """The score of pairs sorted by their coefficients."""
    (score,) = evaluate_sts(embed, pairs)
    return DiceQuintile(
        _dice(pairs[0]), _dice(pairs[-1]), len(pairs), score.spearman["all"], score.pearson["all"]
    )


def _dice(pair: STSPair) -> float:
    return dice_coefficient(pair.first, pair.second)


def _shuffled(pair: STSPair) -> bytes:
    """A key that sorts pairs as if at random, but always alike."""
    return hashlib.sha256(repr(pair).encode()).digest()
