from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.distance import pdist

from tests.evaluation.toys import BagOfWords
from use_st5.data.data_folder import DataFolder
from use_st5.encode.vector_store import Encode, VectorCache
from use_st5.evaluation import sts
from use_st5.evaluation.sts import (
    TASKS,
    STSPair,
    STSSet,
    alignment,
    uniformity,
)
from use_st5.evaluation.task import TaskContext, TaskResult

# Lengths do not count, only directions: east, north, west and 60 degrees from east.
VECTORS = {"e": [2.0, 0.0], "n": [0.0, 3.0], "w": [-1.0, 0.0], "s": [0.5, math.sqrt(0.75)]}
PAIRS = [
    STSPair("e", "n", 4.5),  # squared distance 2
    STSPair("e", "s", 4.0),  # 1
    STSPair("e", "e", 5.0),  # 0
    STSPair("e", "w", 3.9),  # 4
    STSPair("n", "e", 0.0),  # 2
]


def encode(sentences: list[str]) -> np.ndarray:
    return np.array([VECTORS[sentence] for sentence in sentences])


def measured(encode: Encode, pairs: list[STSPair]) -> TaskResult:
    context = TaskContext(VectorCache(encode), DataFolder("."))
    return TASKS[-1].score(context, STSSet("toy", {"all": pairs}))


def test_by_hand() -> None:
    score = measured(encode, PAIRS)
    assert score.scores["alignment_above_4"] == pytest.approx((2 + 0) / 2)
    assert score.scores["alignment_from_4"] == pytest.approx((2 + 1 + 0) / 3)
    # Squared distances of the four: en 2, ew 4, es 1, nw 2, ns 2 − √3, ws 3.
    kernels = [math.exp(-2 * squared) for squared in (2, 4, 1, 2, 2 - math.sqrt(3), 3)]
    assert score.scores["uniformity"] == pytest.approx(math.log(sum(kernels) / 6))
    with_self_pairs = math.log((4 + 2 * sum(kernels)) / 16)
    assert score.scores["uniformity_with_self_pairs"] == pytest.approx(with_self_pairs)
    assert (score.counts["pairs"], score.counts["sentences"]) == (5, 4)
    assert (score.counts["positives_above_4"], score.counts["positives_from_4"]) == (2, 3)


@pytest.mark.parametrize("block", [1, 7, 100, 4096])
def test_uniformity_against_all_distances_at_once(
    block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sts, "_BLOCK", block)
    vectors = np.random.default_rng(0).normal(0.3, 1.0, size=(100, 5)).astype(np.float32)
    unit = vectors.astype(np.float64) / np.linalg.norm(vectors.astype(np.float64), axis=1)[:, None]
    squared = pdist(unit, "sqeuclidean")
    assert uniformity(vectors) == pytest.approx(math.log(np.exp(-2 * squared).mean()), abs=1e-12)
    total = 100 + 2 * np.exp(-2 * squared).sum()
    assert uniformity(vectors, self_pairs=True) == pytest.approx(math.log(total / 100**2))


def test_bounds() -> None:
    same, opposite = np.ones((5, 3)), np.array([[1.0, 2.0], [-2.0, -4.0]])
    assert uniformity(same) == pytest.approx(0.0, abs=1e-12)
    assert uniformity(opposite) == pytest.approx(-8.0)
    assert alignment(opposite[:1], opposite[1:]) == pytest.approx(4.0)
    assert alignment(same, 7 * same) == pytest.approx(0.0)


def test_what_is_refused_or_undefined() -> None:
    with pytest.raises(ValueError, match="NaN or infinity for 'n'"):
        measured(lambda s: np.array([[np.nan if x == "n" else 1.0] for x in s]), PAIRS)
    score = measured(encode, PAIRS[3:])
    assert math.isnan(score.scores["alignment_above_4"])
    assert score.counts["positives_from_4"] == 0


def test_counts_of_the_test_split(data_dir: Path) -> None:
    context = TaskContext(VectorCache(BagOfWords().encode), DataFolder(data_dir))
    result = TASKS[-1].run(context)
    path = data_dir / "sts_raw" / "stsbenchmark" / "sts-test.csv"
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").split("\n") if line]
    gold = [float(row[4]) for row in rows]
    assert result.counts == {
        "pairs": 1379,
        "positives_above_4": sum(score > 4 for score in gold),
        "positives_from_4": sum(score >= 4 for score in gold),
        "sentences": len({row[column].strip() for row in rows for column in (5, 6)}),
    }
    assert result.scores["uniformity"] < result.scores["uniformity_with_self_pairs"] < 0
