"""Files of published tables that hold what they should not."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest

from use_st5.evaluation.published._reading import read_published

GOOD = {
    "paper": {
        "citation": "A et al. (2020)",
        "title": "On Toys",
        "authors": "A, B",
        "year": 2020,
        "venue": "Toys 2020",
        "url": "https://example.org",
        "notes": "",
    },
    "tables": [
        {
            "table": "Table 1",
            "title": "Toys",
            "benchmark": "sts",
            "metric": "spearman_all",
            "unit": "x100",
            "notes": "",
            "rows": [
                {"model": "m", "scores": {"sts12": 70, "average": 70.25}},
                {"model": "m", "settings": "large", "scores": {"sts12": -3.5}, "confirmed": False},
            ],
        }
    ],
}


def write(folder: Path, content: object) -> Path:
    """A file of tables."""
    path = folder / "toys.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def test_reads_what_is_written(tmp_path: Path) -> None:
    (table,) = read_published(write(tmp_path, GOOD))
    assert table.paper.year == 2020
    assert (table.table, table.unit) == ("Table 1", "x100")
    first, second = table.rows
    assert dict(first.scores) == {"sts12": 70.0, "average": 70.25}
    assert (first.settings, first.source, first.confirmed) == ("", "", True)
    assert (second.settings, second.confirmed) == ("large", False)


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (["paper"], [], r"toys\.json: paper: expected an object, received \[\]"),
        (["paper", "year"], "2020", r"paper: year: expected a int, received '2020'"),
        (["paper", "doi"], "x", r"paper: expected no keys but citation, .* received 'doi'"),
        (["tables"], {}, r"toys\.json: tables: expected a list"),
        (["tables", 0, "unit"], "%", r"tables\[0\]: unit: expected 'x100' or '1', received '%'"),
        (["tables", 0, "rows"], [], r"tables\[0\]: rows: expected at least one"),
        (["tables", 0, "rows", 1, "settings"], "", r"rows\[1\]: expected each row once"),
        (["tables", 0, "rows", 0, "scores"], {}, r"rows\[0\]: scores: expected at least one"),
        (["tables", 0, "rows", 0, "scores"], [70], r"rows\[0\]: scores: expected a dict"),
        (["tables", 0, "rows", 0, "confirmed"], 0, r"rows\[0\]: confirmed: expected a bool"),
        (["tables", 0, "rows", 0, "scores", "mr"], "70", r"scores: mr: expected a number up to"),
        (["tables", 0, "rows", 0, "scores", "mr"], True, r"scores: mr: expected a number up to"),
        (["tables", 0, "rows", 0, "scores", "mr"], float("nan"), r"mr: expected .* received nan"),
        (["tables", 0, "rows", 0, "scores", "mr"], 700.0, r"mr: expected a number up to 100"),
    ],
)
def test_wrong_content_is_named(
    tmp_path: Path, place: list[str | int], value: object, message: str
) -> None:
    content = copy.deepcopy(GOOD)
    holder = content
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = value
    with pytest.raises(ValueError, match=message):
        read_published(write(tmp_path, content))


def test_missing_key_is_named(tmp_path: Path) -> None:
    content = copy.deepcopy(GOOD)
    del content["tables"][0]["metric"], content["tables"][0]["title"]
    with pytest.raises(ValueError, match=r"tables\[0\]: expected the keys metric, title, received"):
        read_published(write(tmp_path, content))


def test_correlation_in_percent_does_not_pass_for_one(tmp_path: Path) -> None:
    content = copy.deepcopy(GOOD)
    content["tables"][0]["unit"] = "1"
    with pytest.raises(ValueError, match="expected a number up to 2, received 70"):
        read_published(write(tmp_path, content))


@pytest.mark.parametrize("content", [[], {"tables": []}, {**GOOD, "more": 1}])
def test_other_objects_are_refused(tmp_path: Path, content: object) -> None:
    with pytest.raises(ValueError, match='toys.json: expected an object with the keys "paper"'):
        read_published(write(tmp_path, content))


def test_broken_json_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "toys.json"
    path.write_text('{\n"paper": {,\n', encoding="utf-8")
    with pytest.raises(ValueError, match=r"toys\.json:2: expected JSON, received"):
        read_published(path)
