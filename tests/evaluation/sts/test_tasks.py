from __future__ import annotations

from collections.abc import Callable

import pytest

from use_st5.evaluation.geometry.tasks import TASKS as GEOMETRY
from use_st5.evaluation.sts.tasks import TASKS


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
        "import sys, use_st5.evaluation.sts.tasks, use_st5.evaluation.geometry.tasks; "
        "print(sorted({'tensorflow', 'keras', 'sklearn', 'matplotlib'} & set(sys.modules)))"
    )
    assert fresh_python("-c", code).strip() == "[]"
