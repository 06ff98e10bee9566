"""The validation split of the STS Benchmark (STS-B dev), used for choices in most experiments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from use_st5.data import DataFolder
from use_st5.evaluation import STS_SOURCES, STSPair, evaluate_sts, read_sts


def stsb_dev(data: Path) -> Sequence[STSPair]:
    """The pairs with their scores; an error if the split is not in the data folder."""
    return read_sts(DataFolder(data), STS_SOURCES["STS-B dev"]).pairs


def stsb_development(data: Path) -> Callable[[Callable[[list[str]], Any]], dict[str, float]]:
    """Reads the pairs, and returns a function that scores an encoder on them.

    Returns:
        `encode → {"stsb_dev_pearson": …, "stsb_dev_spearman": …}`, correlations in `[-1, 1]`.
    """
    pairs = stsb_dev(data)

    def scores(encode: Callable[[list[str]], Any]) -> dict[str, float]:
        (score,) = evaluate_sts(encode, pairs)
        return {
            "stsb_dev_pearson": score.pearson["all"],
            "stsb_dev_spearman": score.spearman["all"],
        }

    return scores
