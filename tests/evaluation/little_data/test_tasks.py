from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from tests.evaluation.report.records import entry, record
from use_st5.data.data_folder import DataFolder, MissingDataError
from use_st5.evaluation.little_data.tasks import SECTIONS, TASKS, LittleDataTask
from use_st5.evaluation.report.evaluated import evaluated_models
from use_st5.evaluation.report.theme import LIGHT
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


def curve(*points: tuple[int, float, float | None, int]) -> dict[str, dict]:
    names = ("examples", "accuracy", "std", "draws")
    points = [dict(zip(names, point, strict=True)) for point in points]
    scores = {"accuracy_1000": points[0]["accuracy"]}
    return {"little_data_sst": entry("little_data", "SST", scores, curve=points)}


def test_a_column_per_size_and_a_line_per_model() -> None:
    models = evaluated_models(
        [
            record("a", curve((8000, 0.8, 0.01, 5), (1000, 0.7, 0.025, 5))),
            record("b", {}),
            record("c", curve((1000, 0.75, 0.02, 5), (67349, 0.9, None, 1))),
        ]
    )
    section = SECTIONS[0].of(models, published=True)
    (table,) = section.tables
    assert [column.title for column in table.columns] == ["1,000", "8,000", "67,349"]
    assert [[cell.text for cell in row.cells] for row in table.rows] == [
        ["70.00", "80.00", "–"],
        ["–", "–", "–"],
        ["75.00", "–", "90.00"],
    ]
    assert [cell.small for cell in table.rows[0].cells] == ["± 2.50", "± 1.00", ""]
    assert table.rows[2].cells[2].small == ""
    assert [row.cells[0].best for row in table.rows] == [False, False, True]
    (axes,) = section.plots[0].draw(LIGHT).axes
    assert axes.get_xscale() == "log"
    assert [text.get_text() for text in axes.get_xticklabels()] == ["1k", "8k", "67.3k"]
    assert tuple(axes.lines[0].get_xdata()) == (1000, 8000)
    ends = [tuple(line.get_ydata()) for line in axes.lines[1:3]]
    assert ends == [(67.5, 72.5), (79.0, 81.0)]


def test_nothing_without_it() -> None:
    assert SECTIONS[0].of(evaluated_models([record("a", {})]), published=True) is None
