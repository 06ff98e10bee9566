"""The validation metric of the experiments."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from experiments.stsb_dev import stsb_development
from use_st5.data.data_folder import MissingDataError


def test_an_encoder_that_knows_the_scores_has_a_correlation_of_one(tmp_path: Path) -> None:
    rows = [f"g\tf\t1\t{n}\t{n}\tleft\tright {n}\n" for n in range(5)]
    (tmp_path / "stsbenchmark").mkdir()
    (tmp_path / "stsbenchmark/sts-dev.csv").write_text("".join(rows))

    def encode(texts: list[str]) -> np.ndarray:
        cosines = np.array([int(text[6:]) / 5 if "right" in text else 1.0 for text in texts])
        return np.stack([cosines, np.sqrt(1 - cosines**2)], axis=1)

    assert stsb_development(tmp_path)(encode) == pytest.approx(
        {"stsb_dev_pearson": 1.0, "stsb_dev_spearman": 1.0}
    )


def test_a_missing_split_says_where_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(MissingDataError, match=r"sts-dev\.csv"):
        stsb_development(tmp_path)
