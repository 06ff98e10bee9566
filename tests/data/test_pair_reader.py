from __future__ import annotations

from pathlib import Path

import pytest

from use_st5.data.pair_reader import PairReader


def test_positions_by_default(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("one\ttwo\tthree\n")
    assert list(PairReader(path)) == [{"anchor": "one", "positive": "two"}]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.jsonl", '{"answer": "A", "question": "Q"}\n'),
        ("a.csv", 'answer,question\n"A",Q\n'),
        ("a.tsv", "answer\tid\tquestion\nA\t7\tQ\n"),
    ],
)
def test_names_in_all_formats(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    pairs = list(PairReader(path, anchor="question", positive="answer"))
    assert pairs == [{"anchor": "Q", "positive": "A"}]


def test_real_questions_and_answers(data_dir: Path) -> None:
    reader = PairReader(
        data_dir / "medquad_qa.jsonl", anchor="question", positive="answer", strict=True
    )
    first = next(iter(reader))
    assert first["anchor"] == "What is (are) Adult Acute Lymphoblastic Leukemia ?"
    assert sum(1 for _ in reader) == 16_407
