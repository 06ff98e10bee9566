"""`use-st5 duplicates` and `use-st5 cluster`."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

LINES = ["It rains.", "", "It  rains. ", "The train is late.", "IT RAINS.", "It pours."]


def table(text: str) -> list[list[str]]:
    return [line.split("\t") for line in text.splitlines()]


def test_pairs_of_different_lines(use: Callable, fake: Any, tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_text("\n".join(LINES))
    result = use("duplicates", "texts.txt", "--threshold", "-1")
    assert result.exit_code == 0, result.stderr
    header, *rows = table(result.stdout)
    assert header == ["cosine", "line", "other line", "text", "other text"]
    # Lines 3 and 5 are line 1 again, line 2 is empty.
    assert sorted(row[1:3] for row in rows) == [["1", "4"], ["1", "6"], ["4", "6"]]
    cosines = fake.similarity(LINES, metric="cosine")
    for score, first, second, *texts in rows:
        assert float(score) == pytest.approx(cosines[int(first) - 1, int(second) - 1], abs=1e-4)
        assert texts == [LINES[int(first) - 1], LINES[int(second) - 1]]
    assert [row[0] for row in rows] == sorted((row[0] for row in rows), key=float, reverse=True)
    assert "3 texts of 6 lines: 3 pairs to compare\n" in result.stderr


def test_pairs_of_equal_lines_and_the_limit(use: Callable, fake: Any, tmp_path: Path) -> None:
    (tmp_path / "texts.csv").write_text("n,text\n1,same\n2,same\n3,other\n4,same\n")
    result = use("duplicates", "texts.csv", "--column", "text", "--equal-lines", "--top", "2")
    assert result.exit_code == 0, result.stderr
    assert [row[:3] for row in table(result.stdout)[1:]] == [
        ["1.0000", "1", "2"],
        ["1.0000", "1", "4"],
    ]
    assert "--top 2 cut the list at a cosine of 1.0000" in result.stderr


class Topics:
    """Texts on weather and on trains have the directions of two axes; others are zero."""

    name, max_length, prompts, default_prompt_name = "topics", None, {}, None
    similarity_fn_name = "cosine"

    def encode(self, texts: list[str], **_: object) -> np.ndarray:
        weather = [1.0 * ("rain" in text.split()) for text in texts]
        trains = [1.0 * ("train" in text.split()) for text in texts]
        return np.array([weather, trains], np.float32).T

    def truncated(self, texts: list[str]) -> list[int]:
        return []


TRAINS = ["the train is late", "a train to Bern", "late train"]
WEATHER = ["rain today", "wet rain and wet rain again"]


@pytest.mark.parametrize("options", [("--clusters", "2"), ("--threshold", "0.5")])
def test_groups_with_their_words(
    options: tuple[str, ...], use: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("sklearn")
    monkeypatch.setattr("use_st5.cli.cluster.load_encoder", lambda chosen: Topics())
    texts = [WEATHER[0], TRAINS[0], "", TRAINS[1], WEATHER[1], TRAINS[2]]
    (tmp_path / "texts.txt").write_text("\n".join(texts))
    result = use("cluster", "texts.txt", "--to", "groups.tsv", *options)
    assert result.exit_code == 0, result.stderr
    header, trains, weather = table(result.stdout)
    assert header == ["group", "lines", "words", "typical line"]
    # "late" is twice in the group, "train" three times, and both in no other; "the" is a stop word.
    assert trains == ["1", "3", "train, late, bern", TRAINS[0]]
    assert (weather[:2], weather[2].split(", ")[:2]) == (["2", "2"], ["rain", "wet"])
    with (tmp_path / "groups.tsv").open() as file:
        rows = [(row["label"], row["text"]) for row in csv.DictReader(file, delimiter="\t")]
    assert rows == [("2" if text in WEATHER else "1", text) for text in texts if text]


def test_a_zero_vector_and_texts_without_words(
    use: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("sklearn")
    monkeypatch.setattr("use_st5.cli.cluster.load_encoder", lambda chosen: Topics())
    (tmp_path / "texts.txt").write_text("?\n!\n")
    result = use("cluster", "texts.txt", "--threshold", "0.5")
    assert result.exit_code == 0, result.stderr
    assert table(result.stdout)[1:] == [["1", "1", "", "?"], ["2", "1", "", "!"]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("cluster", "two.txt", "--clusters", "3"), "expected 3 texts, received 2"),
        (("cluster", "two.txt", "--clusters", "3", "--threshold", "1"), "expected one of"),
        (("duplicates", "blank.txt"), "expected texts, one a line, received none"),
    ],
)
def test_errors(arguments: tuple[str, ...], message: str, use: Callable, tmp_path: Path) -> None:
    (tmp_path / "two.txt").write_text("a\nb\n")
    (tmp_path / "blank.txt").write_text("\n \n")
    result = use(*arguments)
    assert result.exit_code
    assert message in result.stderr
