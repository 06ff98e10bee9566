from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from tests.footprint.records import record
from use_st5.footprint.quantity import IDS_TIME, MEMORY, QUANTITIES
from use_st5.footprint.record import FootprintRecord


def test_what_is_written_is_read(tmp_path: Path) -> None:
    for each in (record(), record(working=None)):
        each.write(tmp_path / "record.json")
        assert FootprintRecord.read(tmp_path / "record.json") == each


def test_crossings_of_made_up_curves() -> None:
    """Times meet where n² · 1e-7 s is 1 ms; memory, where 10 MB + n² KB is 21 MB."""
    made = record()
    assert made.crossing("cpu", "steep", IDS_TIME) == "faster up to 100 words, slower beyond"
    words = made.crossing("cpu", "steep", MEMORY)
    assert words.startswith("needs less up to 10")
    assert words.endswith("words, needs more beyond")
    assert len(made.crossings()) == len(QUANTITIES)


def test_ratios_are_those_of_visits_made_together() -> None:
    """A neighbour that slows one visit to both models does not move the ratio."""
    made = record()
    points = [
        dataclasses.replace(
            each, ids_seconds=tuple(map(float.__mul__, each.ids_seconds, (1.0, 50.0, 3.0)))
        )
        for each in made.points
    ]
    loaded = dataclasses.replace(made, points=tuple(points))
    for point in loaded.points:
        expected = point.length**2 / 1e4 if point.model == "steep" else 1
        assert loaded.ratio(point, IDS_TIME) == pytest.approx(expected)


def test_unknown_memory_has_no_ratio_and_no_crossing() -> None:
    made = record(working=None)
    assert made.values(made.points[0], MEMORY) is None
    assert made.ratio(made.points[-1], MEMORY) is None
    assert made.crossing("cpu", "steep", MEMORY) is None
    assert "memory" not in made.summary()["medians"][0]


def test_a_length_that_the_first_model_lacks_has_no_ratio() -> None:
    made = record()
    part = dataclasses.replace(made, points=made.points[1:])
    assert part.ratio(part.curve("cpu", "steep")[0], IDS_TIME) is None
    assert part.crossing("cpu", "steep", IDS_TIME).endswith("from 100 to 200 words")


def test_memory_that_was_nothing_has_no_ratio() -> None:
    made = record(working=0)
    models = tuple(dataclasses.replace(each, parameter_bytes=0) for each in made.models)
    empty = dataclasses.replace(made, models=models)
    assert empty.ratio(empty.points[-1], MEMORY) is None
    assert empty.crossing("cpu", "steep", MEMORY) is None


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("ids_seconds", [0.0], r"points\[0\].ids_seconds\[0\]: expected float >= 1e-12"),
        ("text_seconds", [1e300], r"points\[0\].text_seconds\[0\]: expected float <= 10{12}"),
        ("working_bytes", [-1], r"points\[0\].working_bytes\[0\]: expected int >= 0"),
        ("length", 0, r"points\[0\].length: expected int >= 1"),
    ],
)
def test_figures_that_cannot_be(tmp_path: Path, field: str, value: Any, message: str) -> None:
    content = json.loads(json.dumps(record().content()))
    content["points"][0][field] = value
    path = tmp_path / "r.json"
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=rf"r.json: \$.{message}"):
        FootprintRecord.read(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("text", r"\$: expected JSON, .* Give a record that `use-st5 benchmark` wrote\."),
        ("[]", r"\$: expected object, received array"),
        ('{"format": 1, "models": [{}]}', r"\$.models\[0\]: expected the field name"),
        (json.dumps({"format": 9}), r"\$.format: expected 1, received 9"),
    ],
)
def test_another_file_is_refused(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "other.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=f"other.json: {message}"):
        FootprintRecord.read(path)


def test_points_of_no_model_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    record().write(path)
    path.write_text(path.read_text().replace('"model": "steep"', '"model": "deep"'))
    with pytest.raises(ValueError, match=r"\$.points: expected points of .*some of \['deep'\]"):
        FootprintRecord.read(path)
