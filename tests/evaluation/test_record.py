"""Records of evaluations with contents that are not valid."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from use_st5.evaluation.record import EvaluationRecord

TASK = {
    "group": "sts",
    "title": "STS",
    "protocol": "",
    "options": {},
    "main": "spearman",
    "scores": {"spearman": None},
    "counts": {},
    "details": {"anything": [1]},
    "data": {},
    "seconds": 1.5,
    "kept": "whatever else there is",
}
WHOLE = {
    "format": 1,
    "model": {"name": "m", "identity": None, "dimension": 2},
    "created": "",
    "versions": {},
    "command": "",
    "seed": 1,
    "tasks": {"sts12": TASK},
}


def read(folder: Path, changes: dict[str, Any]) -> EvaluationRecord:
    path = folder / "a.json"
    path.write_text(json.dumps(WHOLE | changes), encoding="utf-8")
    return EvaluationRecord.read(path)


def test_everything_is_kept(tmp_path: Path) -> None:
    assert read(tmp_path, {}).tasks == {"sts12": TASK}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seed": "1"}, r"a.json: \$.seed: expected int, received str"),
        ({"model": {"name": "m"}}, r"a.json: \$.model: object missing required field"),
        ({"model": [1]}, r"a.json: \$.model: expected object, received array"),
        ({"tasks": [1]}, r"a.json: \$.tasks: expected object, received array"),
        ({"failed": {"a": 1}}, r"a.json: \$.failed\[...\]: expected str, received int"),
        ({"command": None}, r"a.json: \$.command: expected str, received null"),
    ],
)
def test_fields_of_another_kind(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=rf"{message}.*Give a record that `use-st5 evaluate`"):
        read(tmp_path, changes)


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("sts12", {"main": "x"}, r"\$.main: expected one of \['spearman'\], received 'x'"),
        ("sts12", {"scores": {"spearman": "1"}}, r"\$.scores\[...\]: expected float \| null"),
        ("sts12", {"options": 3}, r"\$.options: expected object, received int"),
        ("sts12", {"seconds": "1"}, r"\$.seconds: expected float, received str"),
        ("sts12", {"details": []}, r"\$.details: expected object, received array"),
        ("sts12", {"data": {"a": 1}}, r"\$.data\[...\]: expected str, received int"),
        ("w", {"group": "weat", "details": {"categories": [1]}}, r"categories\[0\]: expected str"),
        ("w", {"group": "weat", "details": {"categories": ["a"]}}, "expected four categories"),
    ],
)
def test_what_is_read_of_tasks(
    tmp_path: Path, name: str, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=rf"a.json: task {name}.*{message}"):
        read(tmp_path, {"tasks": {name: TASK | changes}})


@pytest.mark.parametrize("field", ["options", "seconds"])
def test_a_field_that_tables_show_is_missing(tmp_path: Path, field: str) -> None:
    without = {name: value for name, value in TASK.items() if name != field}
    with pytest.raises(
        ValueError, match=rf"a.json: task sts12: \$: object missing required field {field}"
    ):
        read(tmp_path, {"tasks": {"sts12": without}})


@pytest.mark.parametrize("name", ["use_dan_en", "use_transformer_en", "all-MiniLM-L6-v2"])
def test_the_records_in_the_repository(name: str) -> None:
    path = Path(__file__).parents[2] / "results" / f"{name}.json"
    record = EvaluationRecord.read(path)
    assert record.tasks == json.loads(path.read_text(encoding="utf-8"))["tasks"]
