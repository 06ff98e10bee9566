"""What is said of files before the first step."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from use_st5.own_data.sources import Source, open_source
from use_st5.own_data.survey import (
    development_set,
    held_out_rows,
    spread,
    survey,
    training_rows,
    without_development,
)


class Words:
    """Counts words."""

    def token_counts(self, texts: list[str]) -> np.ndarray:
        return np.array([len(text.split()) for text in texts])


@pytest.fixture
def table(tmp_path: Path) -> Callable[..., Source]:
    """Writes a tsv: `table("sts", "sentence1 sentence2 score", rows) -> Source`."""

    def written(name: str, columns: str, rows: list[tuple[object, ...]]) -> Source:
        lines = ["\t".join(columns.split()), *("\t".join(map(str, row)) for row in rows)]
        (tmp_path / f"{name}.tsv").write_text("\n".join(lines) + "\n")
        return open_source(tmp_path / f"{name}.tsv")

    return written


def test_counts_lengths_duplicates_and_what_is_cut(table: Callable[..., Source]) -> None:
    rows = [("a b c", f"word {n}", n % 6) for n in range(12)]
    found = survey(
        table("sts", "sentence1 sentence2 score", [*rows, ("A b C!", "Word 3", 1)]), Words()
    )
    assert (found.rows, found.repeated, found.lowest, found.highest) == (13, 1, 0, 5)
    assert [found.unit_score(score) for score in (0, 2.5, 5)] == [0, 0.5, 1]
    shown = "\n".join(found.lines(limit=2))
    assert "13 rows, 1 of them repeated (1 with another score than before)" in shown
    assert (
        "26 texts of 2 tokens (median), 3 at most; 2 are read: 50.0% of the texts are cut" in shown
    )
    assert "scores: 0 … 5, taken as 0 … 1" in shown
    assert "a b c | word 0 | 0" in shown


def test_scores_between_0_and_1_stay_as_they_are(table: Callable[..., Source]) -> None:
    rows = [("a", "b", 0.2), ("a", "c", 0.7)]
    found = survey(table("sts", "sentence1 sentence2 score", rows), Words())
    assert found.unit_score(0.2) == 0.2


@pytest.mark.parametrize(
    ("columns", "rows", "message"),
    [
        ("sentence1 sentence2 score", [("a", "b", 1), ("c", "d", 1)], "all of them are 1"),
        ("text label", [("a", "x"), ("b", "x")], "2 to 1,000 different labels, found 1: 'x'"),
        (
            "text label",
            [("a", "x"), ("A.", "y"), ("a", "z")],
            r"2 of 3 rows with another one than before \(A\.: x, then y\). Is 'label' the right",
        ),
    ],
)
def test_a_file_that_says_nothing(
    columns: str, rows: list[tuple[object, ...]], message: str, table: Callable[..., Source]
) -> None:
    with pytest.raises(ValueError, match=message):
        survey(table("a", columns, rows), Words())


def test_the_labels_of_inference_have_their_usual_numbers(table: Callable[..., Source]) -> None:
    rows = [("a", "b", "NEUTRAL"), ("a", "c", "CONTRADICTION"), ("a", "d", "ENTAILMENT")]
    found = survey(table("nli", "premise hypothesis label", rows), Words())
    assert [*found.label_numbers] == ["ENTAILMENT", "NEUTRAL", "CONTRADICTION"]
    other = survey(table("two", "premise hypothesis label", [*rows[:2], ("x", "y", "no")]), Words())
    assert [*other.label_numbers] == ["CONTRADICTION", "NEUTRAL", "no"]


def test_rows_are_held_out_with_all_that_begin_alike(table: Callable[..., Source]) -> None:
    rows = [(f"question {n // 3}", f"answer {n}") for n in range(300)]
    found = survey(table("qa", "anchor positive", rows), Words())
    held = held_out_rows(found)
    assert 50 <= len(held) <= 70
    measured = development_set(found, held, "qa")
    left = without_development(found, [measured])
    assert left.kept == 300 - len(held)
    assert left.shared == 0, "no question is on both sides"
    trains = [*training_rows(left, [measured])]
    assert len(trains) == left.kept
    assert not {row["anchor"] for row in trains} & {row["anchor"] for row in held}
    assert held == held_out_rows(found), "nothing is drawn"


def test_too_few_rows_want_a_file_of_their_own(table: Callable[..., Source]) -> None:
    found = survey(table("qa", "anchor positive", [("a", "b")]), Words())
    with pytest.raises(ValueError, match="found 1. Give more, or a file of their own with --dev"):
        held_out_rows(found)


def test_rows_of_the_development_file_are_left_out(table: Callable[..., Source]) -> None:
    train = table("train", "anchor positive", [("a", "b"), ("a", "c"), ("d", "e")])
    dev = table("dev", "anchor positive", [("A", "b."), ("x", "y")])
    found = survey(train, Words())
    sets = [development_set(survey(dev, Words()), [*dev], "dev")]
    left = without_development(found, sets)
    assert (left.left_out, left.shared, left.kept) == (1, 1, 2)
    assert [row["positive"] for row in training_rows(left, sets)] == ["c", "e"]
    with pytest.raises(ValueError, match="all its rows stand in the development set"):
        without_development(found, [development_set(found, [*train], "all")])


def test_rows_are_spread_over_a_file() -> None:
    rows = [{"n": n} for n in range(100)]
    few = [row["n"] for row in spread(rows, 100, 10)]
    assert len(few) in (9, 10)
    assert np.ptp(np.diff(few)) == 0
    assert spread(rows, 100, 1000) == rows
