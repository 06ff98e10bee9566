from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.evaluation.toys import BagOfWords
from use_st5.evaluation.data_folder import DataFolder, MissingDataError
from use_st5.evaluation.sts.sts_sources_task import STSSourcesTask
from use_st5.evaluation.task import TaskContext
from use_st5.vector_store import VectorCache


def write(folder: Path, subset: str, gold: tuple[float, ...]) -> None:
    """Pairs of falling cosine: 1, 1/2, 0."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"STS.input.{subset}.txt").write_text("a b\ta b\na b\ta c\na b\tc d\n")
    (folder / f"STS.gs.{subset}.txt").write_text("".join(f"{score}\n" for score in gold))


def letters(sentences: list[str]) -> np.ndarray:
    return np.array([[letter in sentence for letter in "abcd"] for sentence in sentences], float)


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
