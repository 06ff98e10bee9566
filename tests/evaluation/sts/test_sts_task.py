from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from scipy.spatial import distance

from tests.evaluation.toys import BagOfWords
from use_st5.evaluation.data_folder import DataFolder, MissingDataError
from use_st5.evaluation.sts.sources import STS12, STSB_DEV
from use_st5.evaluation.sts.sts_task import STSTask
from use_st5.evaluation.task import TaskContext
from use_st5.vector_store import VectorCache

# Cosines 1, 1/2 and 0, with the gold scores in this order and in the reverse.
SENTENCES = "a b\ta b\na b\ta c\na b\tc d\n"


@pytest.fixture
def sts12(tmp_path: Path) -> Path:
    folder = tmp_path / "sts" / "STS12-en-test"
    folder.mkdir(parents=True)
    for name, gold in (("MSRpar", "5\n3\n0\n"), ("surprise.OnWN", "1\n2\n4.5\n")):
        (folder / f"STS.input.{name}.txt").write_text(SENTENCES)
        (folder / f"STS.gs.{name}.txt").write_text(gold)
    return folder


def letters(sentences: list[str]) -> np.ndarray:
    return np.array([[letter in sentence for letter in "abcd"] for sentence in sentences], float)


def test_every_aggregation_is_named(sts12: Path) -> None:
    context = TaskContext(VectorCache(letters), DataFolder(sts12.parents[1]))
    result = STSTask("sts12", STS12).run(context)
    assert result.main == "spearman_all"
    assert result.counts == {"pairs": 6}
    assert result.scores["spearman_mean"] == pytest.approx(0.0)
    assert result.scores["spearman_wmean"] == pytest.approx(0.0)
    # Ranks 5.5 3.5 1.5 5.5 3.5 1.5 of the cosines, 6 4 1 2 3 5 of the gold scores.
    cosines, gold = [1, 0.5, 0, 1, 0.5, 0], [5, 3, 0, 1, 2, 4.5]
    assert result.scores["spearman_all"] == pytest.approx(4 / math.sqrt(16 * 17.5))
    assert result.scores["pearson_all"] == pytest.approx(stats.pearsonr(cosines, gold).statistic)
    angular = [1, 1 - 1 / 3, 0.5, 1, 1 - 1 / 3, 0.5]
    expected = stats.pearsonr(angular, gold).statistic
    assert result.scores["pearson_angular_all"] == pytest.approx(expected)
    each = [
        stats.pearsonr(cosines[:3], gold[:3]).statistic,
        stats.pearsonr(cosines[3:], gold[3:]).statistic,
    ]
    assert result.scores["pearson_mean"] == pytest.approx(np.mean(each))
    assert result.details["subsets"] == {
        "MSRpar": {"pairs": 3, "spearman": pytest.approx(1), "pearson": pytest.approx(each[0])},
        "surprise.OnWN": {
            "pairs": 3,
            "spearman": pytest.approx(-1),
            "pearson": pytest.approx(each[1]),
        },
    }


def test_wrong_files_are_named_with_their_line(sts12: Path) -> None:
    task = STSTask("sts12", STS12)
    context = TaskContext(VectorCache(letters), DataFolder(sts12.parents[1]))
    (sts12 / "STS.gs.MSRpar.txt").write_text("5\nhigh\n0\n")
    with pytest.raises(ValueError, match=r"STS\.gs\.MSRpar\.txt:2: expected a score"):
        task.run(context)
    (sts12 / "STS.gs.MSRpar.txt").unlink()
    with pytest.raises(FileNotFoundError, match=r"STS\.gs\.MSRpar\.txt: expected the gold scores"):
        task.run(context)
    with pytest.raises(MissingDataError, match="STS-B dev: expected stsbenchmark/sts-dev.csv or"):
        STSTask("stsb_dev", STSB_DEV).run(context)


def test_wrong_embeddings(sts12: Path) -> None:
    data = DataFolder(sts12.parents[1])
    task = STSTask("sts12", STS12)
    with pytest.raises(ValueError, match=r"expected an array of shape \[3, dim\], received \[2, 4"):
        task.run(TaskContext(VectorCache(lambda s: letters(s)[1:]), data))
    with pytest.raises(ValueError, match="NaN or infinity for 'a b'"):
        task.run(TaskContext(VectorCache(lambda s: letters(s) * np.nan), data))


def test_real_file_against_scipy(data_dir: Path) -> None:
    """The development split, with counts of words: read, embedded and correlated once more here."""
    result = STSTask("stsb_dev", STSB_DEV).run(
        TaskContext(VectorCache(BagOfWords().encode), DataFolder(data_dir))
    )
    path = data_dir / "sts_raw" / "stsbenchmark" / "sts-dev.csv"
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").split("\n") if line]
    encode, genres = BagOfWords().encode, [row[0] for row in rows]
    first, second = (encode([row[column] for row in rows]).astype(np.float64) for column in (5, 6))
    cosines = np.array([1 - distance.cosine(u, v) for u, v in zip(first, second, strict=True)])
    cosines = cosines.round(12)  # ties of SciPy's that are off by a rounding error
    gold = np.array([float(row[4]) for row in rows])
    expected = stats.spearmanr(cosines, gold).statistic
    assert result.scores["spearman_all"] == pytest.approx(expected, abs=2e-5)
    expected = stats.pearsonr(cosines, gold).statistic
    assert result.scores["pearson_all"] == pytest.approx(expected, abs=1e-9)
    parts = [np.array(genres) == genre for genre in dict.fromkeys(genres)]
    each = [stats.pearsonr(cosines[part], gold[part]).statistic for part in parts]
    weighted = np.average(each, weights=[part.sum() for part in parts])
    assert result.scores["pearson_wmean"] == pytest.approx(weighted)
    assert result.scores["pearson_mean"] == pytest.approx(np.mean(each))
