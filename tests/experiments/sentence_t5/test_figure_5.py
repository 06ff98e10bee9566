"""Sentences per second of a toy."""

from __future__ import annotations

import json
from pathlib import Path

from experiments.sentence_t5 import figure_5
from tests.toy_encoders import Toy


def test_speeds_are_measured_and_shown(tmp_path: Path, toy_use_dan: Toy) -> None:
    model = str(toy_use_dan.folders["float32"])
    shown = figure_5.run([model], tmp_path, tokens=(4, 8), batch_sizes=(1, 2), seconds=0.01)
    record = json.loads((tmp_path / "throughput.json").read_text())
    assert [(each["tokens"], each["batch_size"]) for each in record["speeds"]] == [
        *((4, 1), (4, 2), (8, 1), (8, 2))
    ]
    assert all(each["sentences_per_second"] > 0 for each in record["speeds"])
    assert record["setting"]["backend"] == "tensorflow"
    assert "| model | parameters | tokens | batch of 1 | batch of 2 |" in shown
    assert (tmp_path / "throughput.md").read_text() == shown
