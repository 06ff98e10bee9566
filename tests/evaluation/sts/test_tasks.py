from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from scipy.spatial import distance

from tests.evaluation.report.records import entry, record
from tests.evaluation.toys import BagOfWords
from use_st5.data.data_folder import DataFolder, MissingDataError
from use_st5.evaluation.geometry import TASKS as GEOMETRY
from use_st5.evaluation.report.evaluated import evaluated_models
from use_st5.evaluation.report.theme import LIGHT
from use_st5.evaluation.sts.readers import STS12, STSB_DEV
from use_st5.evaluation.sts.tasks import (
    TASKS,
    STSDiceTask,
    STSSourcesTask,
    STSTask,
    partition_plots,
)
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


def write(folder: Path, subset: str, gold: tuple[float, ...]) -> None:
    """Pairs of falling cosine: 1, 1/2, 0."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"STS.input.{subset}.txt").write_text("a b\ta b\na b\ta c\na b\tc d\n")
    (folder / f"STS.gs.{subset}.txt").write_text("".join(f"{score}\n" for score in gold))


def test_mean_over_the_sources_that_are_there(tmp_path: Path) -> None:
    write(tmp_path / "STS12-en-test", "MSRpar", (5, 4, 0))
    write(tmp_path / "STS12-en-test", "surprise.OnWN", (0, 1, 2))
    write(tmp_path / "STS16-en-test", "headlines", (3, 1, 2))
    result = STSSourcesTask().run(TaskContext(VectorCache(letters), DataFolder(tmp_path)))
    assert {name: part["spearman"] for name, part in result.details["sources"].items()} == {
        "STS12 MSRpar": pytest.approx(1.0),
        "STS12 OnWN": pytest.approx(-1.0),
        "STS16 headlines": pytest.approx(0.5),
    }
    assert result.main == "spearman_mean"
    assert result.scores["spearman_mean"] == pytest.approx(0.5 / 3)
    assert result.counts == {"sources": 3, "pairs": 9}
    parts = result.details["sources"].values()
    assert result.scores["pearson_mean"] == pytest.approx(np.mean([p["pearson"] for p in parts]))


def test_no_source(tmp_path: Path) -> None:
    with pytest.raises(MissingDataError, match="at least one of STS12, STS13, STS14, STS15, STS16"):
        STSSourcesTask().run(TaskContext(VectorCache(letters), DataFolder(tmp_path)))


# Table 1 of the paper, without the years that the data folder lacks.
TABLE_1 = {
    "STS12": {"MSRpar": 750, "MSRvid": 750, "SMTeuroparl": 459, "OnWN": 750, "SMTnews": 399},
    "STS13": {"FNWN": 189, "headlines": 750, "OnWN": 561},
    "STS15": {
        "answers-forums": 375,
        "answers-students": 750,
        "belief": 375,
        "headlines": 750,
        "images": 750,
    },
}


def test_sources_of_the_paper(data_dir: Path) -> None:
    context = TaskContext(VectorCache(BagOfWords().encode), DataFolder(data_dir))
    result = STSSourcesTask().run(context)
    assert {name: part["pairs"] for name, part in result.details["sources"].items()} == {
        f"{year} {source}": pairs
        for year, sources in TABLE_1.items()
        for source, pairs in sources.items()
    }


# Rows of one split: gold score and second sentence; the first is "a b c d".
SPLITS = {
    "train": [(1, "e"), (0, "f"), (4, "a"), (5, "b")],
    "dev": [(3, "a b"), (3, "c d"), (2, "a b c")],
    "test": [(1, "b c d"), (5, "d c b a"), (4, "A b c d!")],
}


def near_the_alphabet(sentences: list[str]) -> np.ndarray:
    """Similarities to the first sentence fall from "a…" to "f…"."""
    angles = np.array([ord(sentence[0].lower()) - ord("a") for sentence in sentences]) / 4
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def write_by_dice(folder: Path, splits: dict[str, list[tuple[float, str]]]) -> None:
    folder.mkdir()
    for split, rows in splits.items():
        lines = [f"main\tf\t2012\t1\t{score}\ta b c d\t{second}\n" for score, second in rows]
        (folder / f"sts-{split}.csv").write_text("".join(lines))


def test_by_hand(tmp_path: Path) -> None:
    write_by_dice(tmp_path / "stsbenchmark", SPLITS)
    context = TaskContext(VectorCache(near_the_alphabet), DataFolder(tmp_path))
    result = STSDiceTask().run(context)
    quintiles = result.details["quintiles"]
    assert [(each["dice_from"], each["dice_to"], each["pairs"]) for each in quintiles] == [
        (value, value, 2) for value in (0, 2 / 5, 2 / 3, 6 / 7, 1)
    ]
    # e above f as in gold, a below b, equal gold scores, a above b, A above d though gold is not.
    expected = {"q1": 1, "q2": -1, "q3": np.nan, "q4": 1, "q5": -1}
    for name, value in expected.items():
        assert result.scores[f"spearman_{name}"] == pytest.approx(value, nan_ok=True)
    assert [each["spearman"] for each in quintiles] == pytest.approx(
        [*expected.values()], nan_ok=True
    )
    assert result.main == "spearman_mean"
    assert np.isnan(result.scores["spearman_mean"])
    assert result.counts == {"pairs": 10}


def test_a_split_is_missing(tmp_path: Path) -> None:
    write_by_dice(tmp_path / "stsbenchmark", {name: SPLITS[name] for name in ("dev", "test")})
    with pytest.raises(MissingDataError, match="STS-B train: expected"):
        STSDiceTask().run(TaskContext(VectorCache(near_the_alphabet), DataFolder(tmp_path)))


def test_all_splits_of_the_benchmark(data_dir: Path) -> None:
    context = TaskContext(VectorCache(BagOfWords().encode), DataFolder(data_dir))
    result = STSDiceTask().run(context)
    quintiles = result.details["quintiles"]
    assert [each["pairs"] for each in quintiles] == [1725, 1726, 1725, 1726, 1726]
    assert (quintiles[0]["dice_from"], quintiles[-1]["dice_to"]) == (0, 1)
    scores = [result.scores[f"spearman_q{number}"] for number in range(1, 6)]
    assert result.scores["spearman_mean"] == pytest.approx(np.mean(scores))


def test_names_and_sources() -> None:
    assert [task.name for task in TASKS] == [
        "sts12", "sts13", "sts14", "sts15", "sts16", "stsb_dev", "stsb", "sickr",
        "sts_sources", "sts_dice",
    ]  # fmt: skip
    assert [task.title for task in TASKS[5:8]] == ["STS-B dev", "STS-B test", "SICK-R test"]
    for task in TASKS + GEOMETRY:
        assert task.sources or task.optional_sources
        for source in (*task.sources, *task.optional_sources):
            assert "http" in source.origin
            assert source.licence != "not stated"


@pytest.mark.process
def test_tasks_need_no_tensorflow(fresh_python: Callable[..., str]) -> None:
    code = (
        "import sys, use_st5.evaluation.sts.tasks, use_st5.evaluation.geometry; "
        "print(sorted({'tensorflow', 'keras', 'sklearn', 'matplotlib'} & set(sys.modules)))"
    )
    assert fresh_python("-c", code).strip() == "[]"


def test_points_are_where_the_scores_are() -> None:
    quintiles = [
        {"dice_from": 0.0, "dice_to": 0.5, "spearman": 0.6},
        {"dice_from": 0.5, "dice_to": 1.0, "spearman": None},
    ]
    dice = entry("sts", "STS-B by shared words", {"spearman_mean": 0.6}, quintiles=quintiles)
    one = {"STS12 MSRpar": {"spearman": 0.5}, "STS13 FNWN": {"spearman": -0.1}}
    two = {"STS13 FNWN": {"spearman": 0.3}}
    models = evaluated_models(
        [
            record("a", {"sts_dice": dice, "sts_sources": sources(one)}),
            record("b", {"sts_sources": sources(two)}),
        ]
    )
    fifths, by_source = partition_plots(models)
    (axes,) = fifths.draw(LIGHT).axes
    values = axes.lines[0].get_ydata()
    assert values[0] == 60
    assert math.isnan(values[1])
    assert axes.get_xticklabels()[0].get_text() == "0.00 to\n0.50"
    (axes,) = by_source.draw(LIGHT).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["STS12 MSRpar", "STS13 FNWN"]
    first, second = (line.get_xdata() for line in axes.lines)
    assert tuple(first) == (50, -10)
    assert math.isnan(second[0])
    assert second[1] == 30
    assert by_source.protocol == "As in the paper"


def sources(scores: dict[str, dict]) -> dict:
    return entry("sts", "By source", {"spearman_mean": 0.5}, sources=scores)


def test_no_plots_without_partitions() -> None:
    assert partition_plots(evaluated_models([record("a", {})])) == []
