"""Rows that do not train: validation files, held-out rows, and rows that say the same."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

from tests.training.words import Words
from use_st5.training.dataset_stats import dataset_stats
from use_st5.training.held_out import (
    held_out_rows,
    spread,
    training_rows,
    validation_set,
    without_held_out,
    without_rows_of,
)
from use_st5.training.sources import Source


def test_rows_are_held_out_with_all_that_begin_alike(table: Callable[..., Source]) -> None:
    rows = [(f"question {n // 3}", f"answer {n}") for n in range(300)]
    found = dataset_stats(table("qa", "anchor positive", rows), Words())
    held, _ = held_out_rows(found, tested=False)
    assert 50 <= len(held) <= 70
    measured = validation_set(found, held, "qa")
    left = without_held_out(found, [measured])
    assert left.kept == 300 - len(held)
    assert left.shared == 0, "no question is on both sides"
    trains = [*training_rows(left, [measured])]
    assert len(trains) == left.kept
    assert not {row["anchor"] for row in trains} & {row["anchor"] for row in held}
    assert held == held_out_rows(found, tested=False)[0], "nothing is drawn"


def test_too_few_rows_want_a_file_of_their_own(table: Callable[..., Source]) -> None:
    found = dataset_stats(table("qa", "anchor positive", [("a", "b")]), Words())
    with pytest.raises(ValueError, match="found 1. Add rows, or .* --validation"):
        held_out_rows(found)


def test_rows_of_the_development_file_are_left_out(table: Callable[..., Source]) -> None:
    train = table("train", "anchor positive", [("a", "b"), ("a", "c"), ("d", "e")])
    dev = table("dev", "anchor positive", [("A", "b."), ("x", "y")])
    found = dataset_stats(train, Words())
    sets = [validation_set(dataset_stats(dev, Words()), [*dev], "dev")]
    left = without_held_out(found, sets)
    assert (left.left_out, left.shared, left.kept) == (1, 1, 2)
    assert [row["positive"] for row in training_rows(left, sets)] == ["c", "e"]
    with pytest.raises(
        ValueError, match="expected training rows, found only .* validation or test rows"
    ):
        without_held_out(found, [validation_set(found, [*train], "all")])


def test_a_classifier_has_a_bounded_number_of_examples(table: Callable[..., Source]) -> None:
    found = dataset_stats(
        table("t", "text label", [(f"t {n}", n % 2) for n in range(5000)]), Words()
    )
    held = [{"text": f"other {n}", "label": "0"} for n in range(4500)]
    assert len(validation_set(found, held, "t").examples) <= 2000


def test_rows_are_spread_over_a_file() -> None:
    rows = pa.table({"n": range(100)})
    few = [row["n"] for row in spread(rows, 100, 10)]
    assert len(few) in (9, 10)
    assert np.ptp(np.diff(few)) == 0
    assert spread(rows, 100, 1000) == rows.to_pylist()


def test_rows_that_are_held_out_validate_and_test(table: Callable[..., Source]) -> None:
    """Neither part shares a question with the other, or with the training rows."""
    rows = [(f"question {n // 3}", f"answer {n}") for n in range(300)]
    found = dataset_stats(table("qa", "anchor positive", rows), Words())
    parts = held_out_rows(found)
    assert [25 <= len(part) <= 35 for part in parts] == [True, True]
    sets = [validation_set(found, part, "qa") for part in parts]
    trains = [*training_rows(without_held_out(found, sets), sets)]
    questions = [{row["anchor"] for row in part} for part in (*parts, trains)]
    assert len(set.union(*questions)) == sum(map(len, questions)) == 100


@pytest.mark.parametrize(
    ("rows", "parts"), [(60, (12, 0)), (190, (38, 0)), (210, (21, 21)), (2000, (100, 100))]
)
def test_few_rows_are_one_part(
    rows: int, parts: tuple[int, int], table: Callable[..., Source]
) -> None:
    found = dataset_stats(
        table("t", "text label", [(f"t {n}", n % 2) for n in range(rows)]), Words()
    )
    validation, test = held_out_rows(found)
    assert (len(validation), len(test)) == parts


def test_two_rows_are_too_few_to_hold_some_out(table: Callable[..., Source]) -> None:
    found = dataset_stats(table("t", "text label", [("a", 0), ("b", 1)]), Words())
    with pytest.raises(ValueError, match=r"found 2\. Add rows, or give a file with --validation"):
        held_out_rows(found)


def test_a_pair_does_not_train_the_other_way_round(table: Callable[..., Source]) -> None:
    """Nor with another negative, label or score; (b, a) used to train while (a, b) measured."""
    train = table("train", "anchor positive negative", [("b", "a", "x"), ("a", "c", "b")])
    dev = table("dev", "anchor positive", [("A", "b."), ("x", "y")])
    sets = [validation_set(dataset_stats(dev, Words()), [*dev], "dev")]
    left = without_held_out(dataset_stats(train, Words()), sets)
    assert (left.left_out, left.kept) == (1, 1)
    assert [row["positive"] for row in training_rows(left, sets)] == ["c"]
    rows = [(f"t {n}", f"t {(n * 7) % 400}", n % 5) for n in range(400)]
    both = [*rows, *((b, a, score) for a, b, score in rows)]
    found = dataset_stats(table("sts", "sentence1 sentence2 score", both), Words())
    parts = held_out_rows(found)
    sets = [validation_set(found, part, "sts") for part in parts]
    trains = [*training_rows(found, sets)]
    pairs = [
        {frozenset((row["sentence1"], row["sentence2"])) for row in part}
        for part in (*parts, trains)
    ]
    assert all(parts)
    assert len(set.union(*pairs)) == sum(map(len, pairs))


def test_a_false_negative_becomes_the_rows_own_positive(table: Callable[..., Source]) -> None:
    """The loss does not count a row's own positive as a negative."""
    rows = [("a", "b", "x"), ("A", "c", "B!"), ("d", "b", "c")]
    found = dataset_stats(table("triplets", "anchor positive negative", rows), Words())
    assert [row["negative"] for row in training_rows(found, [])] == ["x", "c", "c"]
    assert [row["negative"] for row in found.source] == ["x", "B!", "c"], "the file stays"


def test_what_tests_does_not_choose(table: Callable[..., Source]) -> None:
    one, other = (
        validation_set(dataset_stats(source, Words()), [*source], source.name)
        for source in (
            table("dev", "anchor positive", [("a", "b"), ("c", "d"), ("e", "f")]),
            table("test", "anchor positive", [("f", "E"), ("g", "h")]),
        )
    )
    assert [row["anchor"] for row in without_rows_of(one, [other]).rows] == ["a", "c"]
    with pytest.raises(ValueError, match="not test rows too, found 0 among 3"):
        without_rows_of(one, [one])


def test_labels_of_the_test_do_not_teach_the_classifier_that_validates(
    table: Callable[..., Source],
) -> None:
    found = dataset_stats(
        table("t", "text label", [(f"t {n}", n % 2) for n in range(400)]), Words()
    )
    validation, test = held_out_rows(found)
    measured = validation_set(found, validation, "t", others=test)
    examples = {row["text"] for row in measured.examples}
    assert len(examples) == 400 - len(validation) - len(test)
    assert examples.isdisjoint(row["text"] for row in (*validation, *test))
