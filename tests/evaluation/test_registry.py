from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.evaluation.toys import words_task
from use_st5.data.data_folder import DataFolder
from use_st5.evaluation import registry
from use_st5.evaluation.registry import all_tasks, groups, select_tasks, with_data


def test_every_task_says_what_it_is() -> None:
    for name, task in all_tasks().items():
        assert task.name == name == name.lower()
        assert task.title
        assert len(task.protocol) > 20, f"{name}: a protocol is a sentence"
        json.dumps(dict(task.options))
        for source in task.sources + task.optional_sources:
            assert source.places
            assert source.origin, f"{name}: nobody knows where to get {source.name}"
    assert not set(groups()) & {"all"}


def test_no_two_tasks_have_one_name() -> None:
    modules = [importlib.import_module(f"use_st5.evaluation.{each}") for each in registry._MODULES]
    assert len(all_tasks()) == sum(len(module.TASKS) for module in modules)


def test_tasks_are_chosen_by_name_and_group_in_the_order_of_the_tables() -> None:
    names = [task.name for task in select_tasks("sickr, sts12,sts12")]
    assert names == ["sts12", "sickr"]
    assert [task.name for task in select_tasks("sts")] == [task.name for task in groups()["sts"]]
    assert select_tasks("all") == [*all_tasks().values()]


@pytest.mark.parametrize("wanted", ["", ",", "sts99", "sts,nothing"])
def test_unknown_names_are_refused(wanted: str) -> None:
    with pytest.raises(ValueError, match=r"groups \(sts, .*received (none|sts99|nothing)\."):
        select_tasks(wanted)


@pytest.mark.process
def test_listing_tasks_needs_nothing_heavy(fresh_python: Callable[..., str]) -> None:
    heavy = ["tensorflow", "keras", "sklearn", "matplotlib"]
    code = (
        "import sys; from use_st5.evaluation.registry import all_tasks; all_tasks();"
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    assert fresh_python("-c", code) == "[]\n"


def test_tasks_whose_data_is_there(tmp_path: Path) -> None:
    words = words_task()
    tasks = [*select_tasks("stsb,mr"), words]
    assert with_data(tasks, DataFolder(tmp_path)) == []
    (tmp_path / "words.txt").write_text("a\n")
    assert with_data(tasks, DataFolder(tmp_path)) == [words]
