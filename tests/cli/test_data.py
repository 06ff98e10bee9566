"""`use-st5 data`: listing data sets and preparing them."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.evaluation.toys import WORDS, words_task
from use_st5.data.data_folder import DataSource
from use_st5.evaluation import registry

SICK = DataSource("SICK-R test", ("sick2014/SICK_test_annotated.txt",), "Zenodo", "CC BY-NC-SA")
COLUMNS = ["data set", "found", "for", "from", "licence", "prepare"]


@pytest.fixture(autouse=True)
def toy_suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two groups of tasks, and a folder `data` with one of their two sets."""
    tasks = (
        words_task(),
        words_task("again", group="more"),
        words_task("sick", sources=(WORDS,), optional_sources=(SICK,)),
    )
    monkeypatch.setattr(registry, "all_tasks", lambda: {task.name: task for task in tasks})
    monkeypatch.delenv("USE_ST5_DATA", raising=False)
    (tmp_path / "data" / "deeper").mkdir(parents=True)
    (tmp_path / "data" / "deeper" / "words.txt").write_text("a", encoding="utf-8")


@pytest.fixture
def downloads(tmp_path: Path) -> Path:
    """SICK as its publishers pack it: an archive for each file."""
    folder = tmp_path / "downloads"
    folder.mkdir()
    for part in ("train", "trial", "test_annotated"):
        with zipfile.ZipFile(folder / f"sick_{part}.zip", "w") as archive:
            archive.writestr(f"SICK_{part}.txt", f"pairs of {part}")
            archive.writestr("readme.txt", "who made it")
    return folder


def rows_of(text: str) -> list[list[str]]:
    return [line.split("\t") for line in text.splitlines()]


def test_sets_are_listed_once_with_what_to_do(use: Callable) -> None:
    result = use("data", "--data", "data")
    assert result.exit_code == 0
    assert rows_of(result.stdout) == [
        COLUMNS,
        ["words", "deeper/words.txt", "toys, more", "nowhere: a test makes it", "not stated", ""],
        ["SICK-R test", "missing", "toys", "Zenodo", "CC BY-NC-SA", "sts"],
    ]


def test_the_variable_and_no_folder(use: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [row[1] for row in rows_of(use("data").stdout)[1:]] == ["unknown", "unknown"]
    monkeypatch.setenv("USE_ST5_DATA", "data")
    assert [row[1] for row in rows_of(use("data").stdout)[1:]] == ["deeper/words.txt", "missing"]
    monkeypatch.setenv("USE_ST5_DATA", "nowhere")
    result = use("data")
    assert (result.exit_code, result.stderr) == (
        1,
        "error: nowhere: expected a folder with data sets, found none.\n",
    )


def test_prepared_sets_are_found(use: Callable, downloads: Path, tmp_path: Path) -> None:
    result = use("data", "prepare", "sts", "--from", "downloads", "--to", "data")
    assert result.exit_code == 0
    assert result.stdout == f"{Path('data', 'sick2014')}\n"
    assert "not written: " in result.stderr
    assert "STS12-en-test" in result.stderr
    assert "sick2014" not in result.stderr
    found = rows_of(use("data", "--data", "data").stdout)[2][1]
    assert found == "sick2014/SICK_test_annotated.txt"
    assert (tmp_path / "data" / found).read_text(encoding="utf-8") == "pairs of test_annotated"


def test_what_exists_stays_unless_it_is_said(
    use: Callable, downloads: Path, tmp_path: Path
) -> None:
    mine = tmp_path / "data" / "sick2014" / "SICK_train.txt"
    mine.parent.mkdir()
    mine.write_text("mine", encoding="utf-8")
    command = ("data", "prepare", "sts", "--from", "downloads", "--to", "data")
    result = use(*command)
    assert (result.exit_code, result.stdout) == (0, "")
    assert (
        f"not changed: {Path('data', 'sick2014')}; --overwrite replaces its files" in result.stderr
    )
    assert mine.read_text(encoding="utf-8") == "mine"
    assert use(*command, "--overwrite").stdout == f"{Path('data', 'sick2014')}\n"
    assert mine.read_text(encoding="utf-8") == "pairs of train"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("nonsense", "--to", "data"), 2, "expected one of sts, senteval, glue/cola, glue/sst2"),
        (("sts", "--to", "data"), 2, "expected a folder with the archives of SemEval"),
        (("sts", "--from", "nowhere", "--to", "data"), 1, "nowhere: expected a folder of downl"),
        (("senteval", "--from", "data", "--to", "data"), 1, "datasmall_NB_ACL12.zip"),
        (("sts", "nonsense", "--from", "downloads", "--to", "data"), 2, "'nonsense'"),
        (("sts", "--from", "downloads"), 2, "--to"),
    ],
)
def test_errors_are_one_line(
    use: Callable, downloads: Path, tmp_path: Path, arguments: tuple, code: int, message: str
) -> None:
    result = use("data", "prepare", *arguments)
    assert result.exit_code == code
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "data" / "sick2014").exists()


def test_damaged_archives_are_named(use: Callable, downloads: Path) -> None:
    (downloads / "sick_train.zip").write_bytes(b"PK no archive")
    result = use("data", "prepare", "sts", "--from", "downloads", "--to", "data")
    assert result.exit_code == 1
    assert "sick_train.zip: expected an archive that can be read" in result.stderr


def test_prepare_has_a_manual_of_its_own(use: Callable) -> None:
    text = use("data", "prepare", "--help").stdout
    assert "Examples" in text
    assert "glue/rte" in text
