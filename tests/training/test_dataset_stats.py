"""The statistics and lines about files before the first step."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.training.words import Words
from use_st5.training.dataset_stats import dataset_stats
from use_st5.training.sources import Source, open_source


def test_counts_lengths_duplicates_and_what_is_cut(table: Callable[..., Source]) -> None:
    rows = [("a b c", f"word {n}", n % 6) for n in range(12)]
    found = dataset_stats(
        table("sts", "sentence1 sentence2 score", [*rows, ("A b C!", "Word 3", 1)]), Words()
    )
    assert (found.rows, found.repeated, found.lowest, found.highest) == (13, 1, 0, 5)
    assert [found.scores.target(score) for score in (0, 2.5, 5)] == [0, 0.5, 1]
    shown = "\n".join(found.lines(limit=2))
    assert "13 rows, 1 of them repeated (1 with another score than before)" in shown
    cut = "26 texts of 2 tokens (median), 3 at most; training cuts 13 of them (50.0%) at 2 tokens"
    assert f"{cut}, the limit of the model" in shown
    assert f"{cut} (--max-length changes this)" in "\n".join(found.lines(limit=2, longer=True))
    assert "3 at most; none is cut" in "\n".join(found.lines(limit=3))
    assert "scores: 0 … 5, scaled from 0 … 5 to 0 … 1" in shown
    assert "a b c | word 0 | 0" in shown


def test_rows_that_a_quote_joins_are_said(tmp_path: Path) -> None:
    (path := tmp_path / "a.csv").write_text('anchor,positive\na,"b\nc\nd"\ne,f\n')
    shown = "\n".join(dataset_stats(open_source(str(path)), Words()).lines(limit=9))
    assert "which a quote joins: 1 (lines 2 to 4)." in shown


def test_a_hard_negative_that_is_a_positive_elsewhere(table: Callable[..., Source]) -> None:
    rows = [("a", "b", "x"), ("A", "c", "B!"), ("d", "b", "c")]
    found = dataset_stats(table("triplets", "anchor positive negative", rows), Words())
    assert found.false_negatives == 1
    assert any("1 hard negatives are not used" in s for s in found.lines(9))
    assert not dataset_stats(
        table("pairs", "anchor positive", [("a", "b")]), Words()
    ).false_negatives


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
        dataset_stats(table("a", columns, rows), Words())


def test_labels_that_no_classifier_can_be_written_with_are_refused_before_the_training(
    table: Callable[..., Source],
) -> None:
    rows = [(f"text {n}", f"{n} " + "long label " * 600) for n in range(900)]
    named = r"labels\.tsv: expected labels with at most 4,194,304 bytes in all, received 900 "
    with pytest.raises(ValueError, match=rf"{named}.*begins with '100 long label.*--column"):
        dataset_stats(table("labels", "text label", rows), Words())


def test_the_labels_of_inference_have_their_usual_numbers(table: Callable[..., Source]) -> None:
    rows = [("a", "b", "NEUTRAL"), ("a", "c", "CONTRADICTION"), ("a", "d", "ENTAILMENT")]
    found = dataset_stats(table("nli", "premise hypothesis label", rows), Words())
    assert [*found.label_numbers] == ["ENTAILMENT", "NEUTRAL", "CONTRADICTION"]
    other = dataset_stats(
        table("two", "premise hypothesis label", [*rows[:2], ("x", "y", "no")]), Words()
    )
    assert [*other.label_numbers] == ["CONTRADICTION", "NEUTRAL", "no"]
