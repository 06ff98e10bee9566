"""The validation split of the STS Benchmark (STS-B dev), used for choices in most experiments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from use_st5.data import DataFolder
from use_st5.encode.vector_store import Encode
from use_st5.evaluation.sts import STSB_DEV, STSPair, evaluate_sts, read_sts


def stsb_dev(data: Path) -> Sequence[STSPair]:
    """The pairs with their scores.

    Args:
        data: The data folder.

    Raises:
        MissingDataError: The split is not in the folder.
    """
    return read_sts(DataFolder(data), STSB_DEV).pairs


def stsb_development(data: Path) -> Callable[[Encode], dict[str, float]]:
    """Reads the pairs, and returns a function that scores an encoder on them.

    Args:
        data: As for `stsb_dev`.

    Returns:
        `encode → {"stsb_dev_pearson": …, "stsb_dev_spearman": …}`, correlations in `[-1, 1]`.

    Raises:
        MissingDataError: The split is not in the folder.
    """
    pairs = stsb_dev(data)

    def scores(encode: Encode) -> dict[str, float]:
        (score,) = evaluate_sts(encode, pairs)
        return {
            "stsb_dev_pearson": score.pearson["all"],
            "stsb_dev_spearman": score.spearman["all"],
        }

    return scores
