"""The validation and the test sets, from files and from held-out rows."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.training.words import Words
from use_st5.training.dataset_stats import dataset_stats
from use_st5.training.sources import Source
from use_st5.training.tasks import TASKS
from use_st5.training.validation_sets import short_names, validation_and_test_sets


def test_of_a_mixture_all_files_test_or_none(table: Callable[..., Source]) -> None:
    """The mean for validation and the mean for the test are over the same tasks."""

    def rows(count: int) -> list[tuple[object, ...]]:
        return [(f"a {n}", f"b {n}") for n in range(count)]

    many, more, few = (
        dataset_stats(table(name, "anchor positive", rows(count)), Words())
        for name, count in (("many", 300), ("more", 400), ("few", 50))
    )
    sets, tests = validation_and_test_sets([many, more], [], [])
    assert [each.name for each in sets] == [each.name for each in tests] == ["many", "more"]
    sets, tests = validation_and_test_sets([many, few], [], [])
    assert ([len(each.rows) for each in sets], tests) == ([60, 10], [])


def test_the_labels_of_a_test_file_are_those_of_a_training_file(
    table: Callable[..., Source],
) -> None:
    train = dataset_stats(
        table("t", "text label", [(f"t {n}", n % 2) for n in range(300)]), Words()
    )
    test = table("test", "text label", [("t 1", 1), ("t 2", 0), ("u", 1)])
    sets, (tested,) = validation_and_test_sets([train], [], [test])
    assert len(tested.rows) == 3
    assert {"t 1", "t 2"}.isdisjoint(row["text"] for row in tested.examples)
    assert {"t 1", "t 2"}.isdisjoint(row["text"] for each in sets for row in each.rows)
    other = table("other", "text label", [("x", "five"), ("y", "six")])
    with pytest.raises(ValueError, match="expected the labels of .*t.tsv, 0, 1; received .* five"):
        validation_and_test_sets([train], [], [other])


def test_files_of_several_tasks_validate_and_test(table: Callable[..., Source]) -> None:
    topics = [(f"t {n}", n % 2) for n in range(20)]
    pairs = [(f"a {n}", f"b {n}", "entailment" if n % 2 else "neutral") for n in range(20)]
    columns = {"topics": "text label", "pairs": "premise hypothesis label"}
    sources = {"topics": table("topics", columns["topics"], topics)}
    sources["pairs"] = table("pairs", columns["pairs"], pairs)
    stats = [dataset_stats(each, Words()) for each in sources.values()]
    for first, second in (("topics", "pairs"), ("pairs", "topics")):
        rows = {"topics": topics[:4], "pairs": pairs[:4]}
        validation = table("v", columns[first], rows[first])
        test = table("w", columns[second], rows[second])
        sets, tests = validation_and_test_sets(stats, [validation], [test])
        assert [len(each.rows) for each in (*sets, *tests)] == [4, 4]
        assert [len(each.examples) for each in (*sets, *tests)] == [16, 16]


@pytest.mark.parametrize(
    ("files", "names"),
    [
        (["x/a.csv", "y/a.tsv", "b-c.csv"], ["a", "a_2", "b_c"]),
        (["x/a_3.csv", "x/a.csv", "y/a.csv"], ["a_3", "a", "a_4"]),
        (["a.csv", "b/a.csv", "a_2.csv"], ["a", "a_2", "a_2_3"]),
        (["1.csv", "-.csv"], ["data_1", "data"]),
        (["m².csv", "größe.csv"], ["m", "größe"]),
        # The tasks of a teacher and of the start's own similarities have these names.
        (["teacher.csv", "start.jsonl"], ["teacher_1", "start_2"]),
    ],
)
def test_every_file_has_a_name_of_its_own(files: list[str], names: list[str]) -> None:
    assert short_names([Source(file, TASKS["pairs"], {}) for file in files]) == names
