from __future__ import annotations

import json
from pathlib import Path

import pytest

from experiments.dialogue_reader import DialogueReader


def write(path: Path, *turns: object) -> Path:
    path.write_text("".join(json.dumps({"turns": each, "id": 7}) + "\n" for each in turns))
    return path


def pairs(reader: DialogueReader) -> list[tuple[str, str]]:
    return [(example["input"], example["response"]) for example in reader]


def test_every_turn_but_the_first_is_a_response(tmp_path: Path) -> None:
    reader = DialogueReader(write(tmp_path / "a.jsonl", ["a", " b ", "c"], ["d", "e"]))
    assert pairs(reader) == [("a", "b"), ("b", "c"), ("d", "e")]
    assert (reader.report.rows, reader.report.examples) == (2, 3)


def test_blank_turns_break_the_exchange(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", ["a", "b", "  ", "d", "e"])
    assert pairs(DialogueReader(path)) == [("a", "b"), ("d", "e")]


def test_short_dialogues_are_skipped_and_malformed_ones_counted(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", ["a", "b"], ["alone"], [], "text", ["a", 3], None)
    reader = DialogueReader(path, max_malformed=0.8)
    assert pairs(reader) == [("a", "b")]
    assert reader.report.skipped == {"fewer than two turns": 2}
    assert reader.report.offences == [
        f"{path}:{line}: 'turns' is no list of texts" for line in (4, 5, 6)
    ]


@pytest.mark.parametrize(("name", "count"), [("sgd_dialogues", 22_825), ("self_dialogue", 24_176)])
def test_real_dialogues(data_dir: Path, name: str, count: int) -> None:
    path = data_dir / f"{name}.jsonl"
    with path.open(encoding="utf-8") as lines:
        dialogues = [json.loads(line)["turns"] for line in lines]
    expected = [(a, b) for turns in dialogues for a, b in zip(turns, turns[1:], strict=False)]
    reader = DialogueReader(path, strict=True)
    assert pairs(reader) == [(a.strip(), b.strip()) for a, b in expected if a.strip() and b.strip()]
    assert reader.report.rows == count
