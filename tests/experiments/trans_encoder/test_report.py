from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from experiments.trans_encoder import report as scoring
from tests.experiments.trans_encoder.pair_sets import some_pairs, write_mrpc, write_semeval
from use_st5.training.trans_encoder import DistilledModel


class Lengths:
    """Encodes a text by its length; scores a pair by the difference of the two lengths."""

    def encode(self, given: object) -> np.ndarray:
        rows = list(given)
        if isinstance(rows[0], str):
            return np.array([[len(text), 1.0] for text in rows])
        return np.array([[len(a) - len(b)] for a, b in rows], np.float32)


def test_both_kinds_are_scored_as_the_tasks_do(tmp_path: Path) -> None:
    pytest.importorskip("sklearn", reason="the extra `evaluation` is not installed")
    pairs = [("aaaa", "b"), ("a", "bb"), ("aa", "bb"), ("aaa", "b")]
    write_semeval(tmp_path, "12", pairs)
    write_mrpc(tmp_path, pairs)
    sets, missing = scoring.test_sets(tmp_path)
    assert [(each.name, each.metric) for each in sets] == [
        ("sts12", "spearman_all"),
        ("pairs_mrpc", "auc"),
    ]
    assert {"STS13", "STS-B test", "QQP"} <= {*missing}
    similarities = scoring.similarities_of(sets, Lengths(), kind="cross")
    np.testing.assert_allclose(similarities["sts12"], 1 / (1 + np.exp(-np.array([3.0, -1, 0, 2]))))
    # Gold scores 0, 1, 2, 3 and ranks 4, 1, 2, 3: 1 - 6 * (9 + 1 + 1 + 1) / 60. MRPC's classes
    # are 0, 1, 0, 1: one of four comparisons of a positive and a negative pair is right.
    assert scoring.scores_of(sets, similarities) == pytest.approx(
        {"sts12": -0.2, "pairs_mrpc": 0.25}
    )
    cosines = scoring.similarities_of(sets, Lengths(), kind="bi")
    assert cosines["sts12"][2] == pytest.approx(1)
    both = scoring.ensemble_similarities([similarities, cosines])
    np.testing.assert_allclose(both["sts12"], (similarities["sts12"] + cosines["sts12"]) / 2)


def test_the_report_has_sets_means_and_the_course() -> None:
    def of_set(name: str, title: str, seed: int) -> scoring.TestSet:
        return scoring.TestSet(name, title, "spearman_all", some_pairs(4, seed), lambda each: 0.0)

    sets = [of_set("sts12", "STS12", 1), of_set("stsb", "STS-B test", 2), of_set("x", "X", 3)]
    scores = {"start": {"sts12": 0.5, "stsb": 0.7, "x": 0.9}}
    models = [DistilledModel("minilm", "cross", 1, 0.81234, 200, None)]
    text = scoring.report("Title", sets, ["STS14"], some_pairs(4, 1), scores, models)
    lines = text.splitlines()
    assert "| STS12 | 4 | transductive: 100% of pairs, 100% of sentences | 50.00 |" in lines
    assert "| mean |  |  | 70.00 |" in lines
    assert "| mean of those without a pair in the pool |  |  | 80.00 |" in lines
    assert "| 1 | minilm, cross | 81.23 | 200 |" in lines
    assert "Not in the data folder: STS14." in lines
