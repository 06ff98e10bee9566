"""The development split of the STS Benchmark: what recipes choose and report by."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from use_st5.data.data_folder import DataFolder
from use_st5.evaluation.sts import STSB_DEV, evaluate_sts, read_stsb

Encode = Callable[[list[str]], np.ndarray]


def stsb_development(data: Path) -> Callable[[Encode], dict[str, float]]:
    """Reads the split and gives what scores an encoder by it.

    Args:
        data: The data folder.

    Returns:
        `encode → {"stsb_dev_pearson": …, "stsb_dev_spearman": …}`, correlations in `[-1, 1]`.

    Raises:
        MissingDataError: The split is not in the folder.
    """
    pairs = read_stsb(DataFolder(data).find(STSB_DEV))

    def scores(encode: Encode) -> dict[str, float]:
        (score,) = evaluate_sts(encode, pairs)
        return {
            "stsb_dev_pearson": score.pearson["all"],
            "stsb_dev_spearman": score.spearman["all"],
        }

    return scores
