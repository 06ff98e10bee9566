from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from use_st5.evaluation.data_folder import DataFolder, MissingDataError
from use_st5.evaluation.little_data.little_data_task import LittleDataTask
from use_st5.evaluation.little_data.tasks import TASKS
from use_st5.evaluation.task import TaskContext
from use_st5.vector_store import VectorCache

TASK = LittleDataTask(sizes=(50, 100), draws=2)


def context(folder: Path) -> TaskContext:
    return TaskContext(
        VectorCache(lambda texts: np.array([[text.count(x) for x in "xy" * 64] for text in texts])),
        DataFolder(folder),
    )


def write(folder: Path, part: str, count: int) -> None:
    (folder / "SST" / "binary").mkdir(parents=True, exist_ok=True)
    lines = [f"{'xy'[n % 2]} {n % 9} \t{n % 2}" for n in range(count)]
    path = folder / "SST" / "binary" / f"sentiment-{part}"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_result(tmp_path: Path) -> None:
    for part, count in (("train", 200), ("dev", 50), ("test", 40)):
        write(tmp_path, part, count)
    result = TASK.run(context(tmp_path))
    assert result.main == "accuracy_50"
    assert [*result.scores] == ["accuracy_50", "accuracy_100", "accuracy_all"]
    assert result.scores["accuracy_all"] == 1.0
    assert result.counts == {"train": 200, "dev": 50, "test": 40}
    curve = result.details["curve"]
    assert [point["examples"] for point in curve] == [50, 100, 200]
    assert [point["accuracy"] for point in curve] == [*result.scores.values()]
    assert {point["draws"] for point in curve} == {2}
    assert all(math.isfinite(point["std"]) for point in curve)
    json.dumps(result.details)


def test_too_few_phrases_and_missing_files(tmp_path: Path) -> None:
    for part in ("train", "dev"):
        write(tmp_path, part, 60)
    with pytest.raises(MissingDataError, match="expected SST/binary/sentiment-test"):
        TASK.run(context(tmp_path))
    write(tmp_path, "test", 10)
    with pytest.raises(ValueError, match=r"sizes: expected 1 to 60 .* received \[100\]"):
        TASK.run(context(tmp_path))


def test_a_bad_line_is_named(tmp_path: Path) -> None:
    for part in ("train", "dev", "test"):
        write(tmp_path, part, 200)
    path = tmp_path / "SST" / "binary" / "sentiment-dev"
    path.write_text("good \t1\nso so \t2\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"sentiment-dev:2: .* received '2'"):
        TASK.run(context(tmp_path))


def test_the_sizes_of_the_paper() -> None:
    (task,) = TASKS
    assert task.options()["sizes"] == [1000, 2000, 4000, 8000, 16000, 32000]
    assert (task.name, task.group) == ("little_data_sst", "little_data")
    assert json.loads(json.dumps(task.options())) == task.options()
