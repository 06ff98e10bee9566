"""`use-st5 data` lists the data sets: where they lie, who uses them, and where they come from."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.evaluation.toys import WORDS, words_task
from use_st5.data.data_folder import DataSource
from use_st5.evaluation import task as task_module

SICK = DataSource("SICK-R test", ("sick2014/SICK_test_annotated.txt",), "Zenodo", "CC BY-NC-SA")
COLUMNS = ["data set", "found", "for", "from", "licence"]


@pytest.fixture(autouse=True)
def toy_suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two groups of tasks, and a folder `data` with one of their two sets."""
    tasks = (
        words_task(),
        words_task("again", group="more"),
        words_task("sick", sources=(WORDS, SICK)),
    )
    monkeypatch.setattr(task_module, "all_tasks", lambda: {task.name: task for task in tasks})
    monkeypatch.delenv("USE_ST5_DATA", raising=False)
    (tmp_path / "data" / "deeper").mkdir(parents=True)
    (tmp_path / "data" / "deeper" / "words.txt").write_text("a", encoding="utf-8")


def rows_of(text: str) -> list[list[str]]:
    return [line.split("\t") for line in text.splitlines()]


def test_sets_are_listed_once_with_what_to_do(use: Callable) -> None:
    result = use("data", "--data", "data")
    assert result.exit_code == 0
    assert rows_of(result.stdout) == [
        COLUMNS,
        ["words", "deeper/words.txt", "toys, more", "nowhere: a test makes it", "not stated"],
        ["SICK-R test", "missing", "toys", "Zenodo", "CC BY-NC-SA"],
    ]


def test_the_variable_and_no_folder(use: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [row[1] for row in rows_of(use("data").stdout)[1:]] == ["unknown", "unknown"]
    monkeypatch.setenv("USE_ST5_DATA", "data")
    assert [row[1] for row in rows_of(use("data").stdout)[1:]] == ["deeper/words.txt", "missing"]
    monkeypatch.setenv("USE_ST5_DATA", "nowhere")
    result = use("data")
    assert (result.exit_code, "nowhere: expected a folder" in result.stderr) == (1, True)
