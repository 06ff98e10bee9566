from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from tests.evaluation.toys import BagOfWords
from use_st5.evaluation.data_folder import DataFolder
from use_st5.evaluation.geometry.geometry_task import GeometryTask
from use_st5.evaluation.task import TaskContext
from use_st5.vector_store import VectorCache


def letters(sentences: list[str]) -> np.ndarray:
    return np.array([[letter in sentence for letter in "abcd"] for sentence in sentences], float)


def test_scores_and_counts(tmp_path: Path) -> None:
    (tmp_path / "STSBenchmark").mkdir()
    rows = [("4.001", "a", "ab"), ("4", "c", "d"), ("3.999", "a", "d")]
    lines = [f"main\tf\t2012\t1\t{score}\t{first}\t{second}\n" for score, first, second in rows]
    (tmp_path / "STSBenchmark" / "sts-test.csv").write_text("".join(lines))
    result = GeometryTask().run(TaskContext(VectorCache(letters), DataFolder(tmp_path)))
    near = 2 - math.sqrt(2)  # squared distance of a and ab; all others are 2
    kernels = math.exp(-2 * near) + 5 * math.exp(-4)
    assert result.main == "uniformity"
    assert result.scores == {
        "alignment_above_4": pytest.approx(near),
        "alignment_from_4": pytest.approx((near + 2) / 2),
        "uniformity": pytest.approx(math.log(kernels / 6)),
        "uniformity_with_self_pairs": pytest.approx(math.log((2 * kernels + 4) / 16)),
    }
    assert result.counts == {
        "pairs": 3, "positives_above_4": 1, "positives_from_4": 2, "sentences": 4,
    }  # fmt: skip


def test_counts_of_the_test_split(data_dir: Path) -> None:
    context = TaskContext(VectorCache(BagOfWords().encode), DataFolder(data_dir))
    result = GeometryTask().run(context)
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
