"""The rows of training files: statistics, held-out rows, and what the losses read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.toy_encoders import Toy
from tests.training.words import Words
from use_st5.losses.contrastive_loss import ContrastiveLoss
from use_st5.trainable_encoder import TrainableEncoder
from use_st5.training.rows import (
    TrainingFile,
    add_statistics,
    held_out_rows,
    leave_out,
    loss_table,
    read_file,
    score_range,
    short_names,
    spread,
    teacher_rows,
    teacher_texts,
    training_table,
    validation_and_test_sets,
    validation_set,
    without_rows_of,
)
from use_st5.training.tasks import TASKS


def test_counts_lengths_duplicates_and_what_is_cut(table: Callable[..., TrainingFile]) -> None:
    rows = [("a b c", f"word {n}", n % 6) for n in range(12)]
    found = add_statistics(
        table("sts", "sentence1 sentence2 score", [*rows, ("A b C!", "Word 3", 1)]), Words()
    )
    assert (found.rows, found.repetitions, found.score_limits) == (13, (1, 1), (0, 5))
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
    shown = "\n".join(add_statistics(read_file(str(path)), Words()).lines(limit=9))
    assert "which a quote joins (first: lines 2 to 4): 1" in shown


def test_a_hard_negative_that_is_a_positive_elsewhere(table: Callable[..., TrainingFile]) -> None:
    rows = [("a", "b", "x"), ("A", "c", "B!"), ("d", "b", "c")]
    found = add_statistics(table("triplets", "anchor positive negative", rows), Words())
    assert sum(map(np.count_nonzero, found.false_negatives.values())) == 1
    assert any("1 hard negatives are not used" in s for s in found.lines(9))
    assert not add_statistics(
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
    columns: str, rows: list[tuple[object, ...]], message: str, table: Callable[..., TrainingFile]
) -> None:
    with pytest.raises(ValueError, match=message):
        add_statistics(table("a", columns, rows), Words())


def test_the_labels_of_inference_have_their_usual_numbers(
    table: Callable[..., TrainingFile],
) -> None:
    rows = [("a", "b", "NEUTRAL"), ("a", "c", "CONTRADICTION"), ("a", "d", "ENTAILMENT")]
    found = add_statistics(table("nli", "premise hypothesis label", rows), Words())
    assert [*found.label_numbers] == ["ENTAILMENT", "NEUTRAL", "CONTRADICTION"]
    other = add_statistics(
        table("two", "premise hypothesis label", [*rows[:2], ("x", "y", "no")]), Words()
    )
    assert [*other.label_numbers] == ["CONTRADICTION", "NEUTRAL", "no"]


@pytest.mark.parametrize(
    ("rows", "low", "middle", "line"),
    [
        ((0.2, 0.7), 0.2, 0.45, "scores: 0.2 … 0.7, not scaled"),
        ((-0.2, 0.9), -0.2, 0.35, "scores: -0.2 … 0.9, not scaled"),
        ((0, 5), 0, 0.5, "scores: 0 … 5, scaled from 0 … 5 to 0 … 1"),
        ((0.5, 4.5), 0.1, 0.5, "scores: 0.5 … 4.5, scaled from 0 … 5 to 0 … 1"),
        ((1, 4.5), 0, 0.4375, "scores: 1 … 4.5, scaled from 1 … 5 to 0 … 1"),
        ((0, 9), 0, 0.45, "scores: 0 … 9, scaled from 0 … 10 to 0 … 1"),
        ((10, 90), 0.1, 0.5, "scores: 10 … 90, scaled from 0 … 100 to 0 … 1"),
        ((-5, 15), 0, 0.5, "scores: -5 … 15, scaled from -5 … 15 to 0 … 1 (not a usual range"),
    ],
)
def test_the_narrowest_usual_range_that_holds_the_rows(
    rows: tuple[float, float], low: float, middle: float, line: str
) -> None:
    found = score_range("sts.csv", *rows, requested=None)
    assert found.target(rows[0]) == pytest.approx(low)
    assert found.target(sum(rows) / 2) == pytest.approx(middle)
    assert found.line(*rows).startswith(line)


def test_a_range_that_is_asked_for() -> None:
    found = score_range("sts.csv", 1, 4, requested=(0, 4))
    assert [found.target(score) for score in (0, 1, 4)] == [0, 0.25, 1]
    assert score_range("cos.csv", -0.5, 0.5, requested=(-1, 1)).target(0) == 0.5
    with pytest.raises(ValueError, match=r"sts.csv: expected scores from 0 to 3, .* found .* 1 to"):
        score_range("sts.csv", 1, 4, requested=(0, 3))


def test_rows_are_held_out_with_all_that_begin_alike(table: Callable[..., TrainingFile]) -> None:
    rows = [(f"question {n // 3}", f"answer {n}") for n in range(300)]
    found = add_statistics(table("qa", "anchor positive", rows), Words())
    held, _ = held_out_rows(found, tested=False)
    assert 50 <= len(held) <= 70
    measured = validation_set(found, held, "qa")
    left = leave_out(found, [measured])
    assert left.kept == 300 - len(held)
    assert left.shared == 0, "no question is on both sides"
    trains = training_table(left, [measured]).to_pylist()
    assert len(trains) == left.kept
    assert not {row["anchor"] for row in trains} & {row["anchor"] for row in held}
    assert held == held_out_rows(found, tested=False)[0], "nothing is drawn"


def test_too_few_rows_want_a_file_of_their_own(table: Callable[..., TrainingFile]) -> None:
    found = add_statistics(table("qa", "anchor positive", [("a", "b")]), Words())
    with pytest.raises(ValueError, match="found 1. Add rows, or .* --validation"):
        held_out_rows(found)


def test_rows_of_the_development_file_are_left_out(table: Callable[..., TrainingFile]) -> None:
    train = table("train", "anchor positive", [("a", "b"), ("a", "c"), ("d", "e")])
    dev = table("dev", "anchor positive", [("A", "b."), ("x", "y")])
    found = add_statistics(train, Words())
    sets = [validation_set(add_statistics(dev, Words()), [*dev], "dev")]
    left = leave_out(found, sets)
    assert (left.left_out, left.shared, left.kept) == (1, 1, 2)
    assert [row["positive"] for row in training_table(left, sets).to_pylist()] == ["c", "e"]
    with pytest.raises(
        ValueError, match="expected training rows, found only .* validation or test rows"
    ):
        leave_out(found, [validation_set(found, [*train], "all")])


def test_a_classifier_has_a_bounded_number_of_examples(table: Callable[..., TrainingFile]) -> None:
    found = add_statistics(
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


def test_rows_that_are_held_out_validate_and_test(table: Callable[..., TrainingFile]) -> None:
    """Neither part shares a question with the other, or with the training rows."""
    rows = [(f"question {n // 3}", f"answer {n}") for n in range(300)]
    found = add_statistics(table("qa", "anchor positive", rows), Words())
    parts = held_out_rows(found)
    assert [25 <= len(part) <= 35 for part in parts] == [True, True]
    sets = [validation_set(found, part, "qa") for part in parts]
    trains = training_table(leave_out(found, sets), sets).to_pylist()
    questions = [{row["anchor"] for row in part} for part in (*parts, trains)]
    assert len(set.union(*questions)) == sum(map(len, questions)) == 100


@pytest.mark.parametrize(
    ("rows", "parts"), [(60, (12, 0)), (190, (38, 0)), (210, (21, 21)), (2000, (100, 100))]
)
def test_few_rows_are_one_part(
    rows: int, parts: tuple[int, int], table: Callable[..., TrainingFile]
) -> None:
    found = add_statistics(
        table("t", "text label", [(f"t {n}", n % 2) for n in range(rows)]), Words()
    )
    validation, test = held_out_rows(found)
    assert (len(validation), len(test)) == parts


def test_a_pair_does_not_train_the_other_way_round(table: Callable[..., TrainingFile]) -> None:
    """Nor with another negative, label or score; (b, a) used to train while (a, b) measured."""
    train = table("train", "anchor positive negative", [("b", "a", "x"), ("a", "c", "b")])
    dev = table("dev", "anchor positive", [("A", "b."), ("x", "y")])
    sets = [validation_set(add_statistics(dev, Words()), [*dev], "dev")]
    left = leave_out(add_statistics(train, Words()), sets)
    assert (left.left_out, left.kept) == (1, 1)
    assert [row["positive"] for row in training_table(left, sets).to_pylist()] == ["c"]
    rows = [(f"t {n}", f"t {(n * 7) % 400}", n % 5) for n in range(400)]
    both = [*rows, *((b, a, score) for a, b, score in rows)]
    found = add_statistics(table("sts", "sentence1 sentence2 score", both), Words())
    parts = held_out_rows(found)
    sets = [validation_set(found, part, "sts") for part in parts]
    trains = training_table(found, sets).to_pylist()
    pairs = [
        {frozenset((row["sentence1"], row["sentence2"])) for row in part}
        for part in (*parts, trains)
    ]
    assert all(parts)
    assert len(set.union(*pairs)) == sum(map(len, pairs))


def test_a_false_negative_becomes_the_rows_own_positive(table: Callable[..., TrainingFile]) -> None:
    """The loss does not count a row's own positive as a negative."""
    rows = [("a", "b", "x"), ("A", "c", "B!"), ("d", "b", "c")]
    found = add_statistics(table("triplets", "anchor positive negative", rows), Words())
    assert [row["negative"] for row in training_table(found, []).to_pylist()] == ["x", "c", "c"]
    assert [row["negative"] for row in found] == ["x", "B!", "c"], "the file stays"


def test_what_tests_does_not_choose(table: Callable[..., TrainingFile]) -> None:
    one, other = (
        validation_set(add_statistics(source, Words()), [*source], source.name)
        for source in (
            table("dev", "anchor positive", [("a", "b"), ("c", "d"), ("e", "f")]),
            table("test", "anchor positive", [("f", "E"), ("g", "h")]),
        )
    )
    assert [row["anchor"] for row in without_rows_of(one, [other]).rows] == ["a", "c"]
    with pytest.raises(ValueError, match="not test rows too, found 0 among 3"):
        without_rows_of(one, [one])


def test_labels_of_the_test_do_not_teach_the_classifier_that_validates(
    table: Callable[..., TrainingFile],
) -> None:
    found = add_statistics(
        table("t", "text label", [(f"t {n}", n % 2) for n in range(400)]), Words()
    )
    validation, test = held_out_rows(found)
    measured = validation_set(found, validation, "t", others=test)
    examples = {row["text"] for row in measured.examples}
    assert len(examples) == 400 - len(validation) - len(test)
    assert examples.isdisjoint(row["text"] for row in (*validation, *test))


def test_of_a_mixture_all_files_test_or_none(table: Callable[..., TrainingFile]) -> None:
    """The mean for validation and the mean for the test are over the same tasks."""

    def rows(count: int) -> list[tuple[object, ...]]:
        return [(f"a {n}", f"b {n}") for n in range(count)]

    many, more, few = (
        add_statistics(table(name, "anchor positive", rows(count)), Words())
        for name, count in (("many", 300), ("more", 400), ("few", 50))
    )
    sets, tests = validation_and_test_sets([many, more], [], [])
    assert [each.name for each in sets] == [each.name for each in tests] == ["many", "more"]
    sets, tests = validation_and_test_sets([many, few], [], [])
    assert ([len(each.rows) for each in sets], tests) == ([60, 10], [])


def test_the_labels_of_a_test_file_are_those_of_a_training_file(
    table: Callable[..., TrainingFile],
) -> None:
    train = add_statistics(
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


def test_files_of_several_tasks_validate_and_test(table: Callable[..., TrainingFile]) -> None:
    topics = [(f"t {n}", n % 2) for n in range(20)]
    pairs = [(f"a {n}", f"b {n}", "entailment" if n % 2 else "neutral") for n in range(20)]
    columns = {"topics": "text label", "pairs": "premise hypothesis label"}
    sources = {"topics": table("topics", columns["topics"], topics)}
    sources["pairs"] = table("pairs", columns["pairs"], pairs)
    stats = [add_statistics(each, Words()) for each in sources.values()]
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
    assert short_names([TrainingFile(file, TASKS["pairs"], {}) for file in files]) == names


def test_a_loss_reads_the_texts_with_their_prompts(toy_use_dan: Toy, tmp_path: Path) -> None:
    encoder = TrainableEncoder.load(toy_use_dan.folders["float32"])
    rows = [("the cat", "sat on the mat", "a dog"), ("a dog", "ran", "the cat")]
    lines = ["anchor\tpositive\tnegative", *map("\t".join, rows)]
    (tmp_path / "faq.tsv").write_text("\n".join(lines) + "\n")
    prompts = {"anchor": "the dog sat: ", "positive": "a mat ran: "}
    source = read_file(tmp_path / "faq.tsv", prompts=prompts)
    found = add_statistics(source, encoder.tokenizer)
    texts = [
        [prompts.get(key, "") + row[place] for row in rows]
        for place, key in enumerate(("anchor", "positive", "negative"))
    ]
    counts = [encoder.tokenizer.token_counts(each) for each in texts]
    np.testing.assert_array_equal(np.sort(found.lengths), np.sort(np.concatenate(counts)))
    loss = ContrastiveLoss(hard_negatives=1)
    names = [feature.name for feature in loss.features]
    expected = [dict(zip(names, row, strict=True)) for row in zip(*texts, strict=True)]
    assert loss_table(found, [], encoder, None, loss).to_pylist() == expected
    assert any("prompts: anchor 'the dog sat: '" in line for line in found.lines(99))
    assert any(line.endswith("; none before negative") for line in found.lines(99))


def test_a_teacher_reads_the_texts_and_the_start_the_texts_with_prompts(
    toy_use_dan: Toy, tmp_path: Path
) -> None:
    folder = toy_use_dan.folders["float32"]
    encoder, teacher = TrainableEncoder.load(folder), TrainableEncoder.load(folder)
    (tmp_path / "t.tsv").write_text("text\nthe cat\na dog\n")
    source = read_file(tmp_path / "t.tsv", prompts="sat ran: ")
    stats = [add_statistics(source, encoder.tokenizer)]
    prompted = ["sat ran: the cat", "sat ran: a dog"]
    for each, texts in ((teacher, ["the cat", "a dog"]), (encoder, prompted)):
        pairs = teacher_texts(each, encoder, stats, [])
        rows = [*teacher_rows(each, pairs)]
        assert [row["sentence"] for row in rows] == prompted
        vectors = np.stack([row["teacher"] for row in rows])
        np.testing.assert_allclose(vectors, encoder.encode(texts), atol=1e-6)
