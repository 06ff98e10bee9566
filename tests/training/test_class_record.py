"""The record of class names: every record that is written can be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from use_st5.io.records import LIMIT, read_record
from use_st5.training.class_record import LARGEST, ClassRecord, record_text


def test_nine_hundred_long_labels_are_written_and_read(tmp_path: Path) -> None:
    """An earlier version trained with them for minutes, and could not load the classifier."""
    labels = [f"{n} " + "é" * 300 for n in range(900)]
    text = record_text(labels, {"asked": 0.5}, where="a.json")
    assert LIMIT < len(text) < LARGEST
    (tmp_path / "a.json").write_text(text, encoding="utf-8")
    found = read_record(tmp_path / "a.json", ClassRecord, remedy="", limit=LARGEST)
    assert (found.labels, found.accuracy) == (labels, {"asked": 0.5})


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (
            ["a", "b" * LARGEST],
            "a.json: expected labels with at most .* received 2 labels with 4,.*'bbbb",
        ),
        (["a", "\ud800"], r"a\.json: \$"),
    ],
)
def test_what_cannot_be_read_is_not_written(labels: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        record_text(labels, {}, where="a.json")
