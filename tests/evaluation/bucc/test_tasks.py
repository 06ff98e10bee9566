from __future__ import annotations

from pathlib import Path

import pytest

from tests.evaluation.toys import BagOfWords
from use_st5.data.data_folder import DataFolder, MissingDataError
from use_st5.evaluation.bucc.tasks import TASKS, BUCCTask
from use_st5.evaluation.task import TaskContext, TaskResult
from use_st5.vector_store import VectorCache

# Translations share both words with each other, and one word with another sentence.
FOREIGN = ["tango uno", "tango dos", "vals tres", "polka"]
ENGLISH = ["uno tango", "dos tango", "tres", "rumba", "foxtrot"]


def write(folder: Path, part: str, gold: list[tuple[int, int]]) -> None:
    folder.mkdir(exist_ok=True)
    rows = {
        "de": [f"de-{row}\t{text}" for row, text in enumerate(FOREIGN)],
        "en": [f"en-{row}\t{text}" for row, text in enumerate(ENGLISH)],
        "gold": [f"de-{one}\ten-{other}" for one, other in gold],
    }
    for side, lines in rows.items():
        (folder / f"de-en.{part}.{side}").write_text("\n".join(lines) + "\n", encoding="utf-8")


def run(folder: Path) -> TaskResult:
    return BUCCTask("de").run(TaskContext(VectorCache(BagOfWords().encode), DataFolder(folder)))


@pytest.mark.parametrize("part", ["dev", "sample", "training"])
def test_without_test_gold_the_scores_are_those_of_the_development_set(
    tmp_path: Path, part: str
) -> None:
    write(tmp_path / "bucc2018", part, [(0, 0), (1, 1), (2, 2)])
    result = run(tmp_path)
    assert result.main == "f1_dev"
    assert set(result.scores) == {"threshold", "f1_dev", "precision_dev", "recall_dev"}
    assert result.scores["f1_dev"] == 1.0
    assert result.counts == {"foreign_dev": 4, "english_dev": 5, "gold_dev": 3}
    assert result.details == {"development": part, "test": None}


@pytest.mark.parametrize("names", [("dev", "test"), ("sample", "training"), ("training", "test")])
def test_the_threshold_of_development_is_used_on_test(
    tmp_path: Path, names: tuple[str, str]
) -> None:
    development, test = names
    write(tmp_path / "bucc2018", development, [(0, 0), (1, 1), (2, 2)])
    write(tmp_path / "bucc2018", test, [(0, 0), (3, 3)])
    result = run(tmp_path)
    assert result.main == "f1"
    # The same three pairs are mined; one of them is gold here, of two.
    assert (result.scores["precision"], result.scores["recall"]) == (1 / 3, 1 / 2)
    assert result.scores["f1"] == pytest.approx(2 / 5)
    assert (result.scores["f1_dev"], result.counts["gold"], result.counts["gold_dev"]) == (1, 2, 3)
    assert result.details == {"development": development, "test": test}


def test_the_official_test_part_has_no_gold(tmp_path: Path) -> None:
    for part in ("sample", "test", "training"):
        write(tmp_path / "bucc2018", part, [(0, 0)])
    (tmp_path / "bucc2018" / "de-en.test.gold").unlink()
    assert run(tmp_path).details == {"development": "sample", "test": "training"}


def test_files_that_are_missing(tmp_path: Path) -> None:
    write(tmp_path / "bucc2018", "dev", [(0, 0)])
    (tmp_path / "bucc2018" / "de-en.dev.en").rename(tmp_path / "bucc2018" / "de-en.train.en")
    with pytest.raises(FileNotFoundError, match="one of dev, sample, training; found none"):
        run(tmp_path)
    (tmp_path / "bucc2018" / "de-en.train.en").unlink()
    with pytest.raises(MissingDataError, match=r"BUCC de-en en: expected de-en\.\*\.en"):
        BUCCTask("de").used_sources(DataFolder(tmp_path))


def test_names_and_groups() -> None:
    assert [(task.group, task.name) for task in TASKS] == [
        ("bucc", "bucc_de-en"),
        ("bucc", "bucc_fr-en"),
        ("bucc", "bucc_ru-en"),
        ("bucc", "bucc_zh-en"),
    ]


def test_every_task_says_what_its_files_are_called_and_where_they_come_from() -> None:
    for task in TASKS:
        assert all(source.places and "https://" in source.origin for source in task.sources)
    assert [source.places for source in TASKS[0].sources] == [
        ("de-en.*.de",),
        ("de-en.*.en",),
        ("de-en.*.gold",),
    ]
