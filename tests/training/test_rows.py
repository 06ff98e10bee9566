"""The rows of training files: reading, statistics, held-out rows, and what the losses read."""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import functools
import importlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.toy_encoders import Toy
from tests.training.words import Words
from use_st5.losses.contrastive_loss import ContrastiveLoss
from use_st5.trainable_encoder import TrainableEncoder
from use_st5.training.rows import (
    Prompts,
    TrainingFile,
    add_statistics,
    check_prompts,
    given_files,
    held_out_rows,
    labels_in,
    leave_out,
    loss_table,
    prompts_by_key,
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
from use_st5.training.tasks import (
    INFERENCE,
    LABELS,
    NEIGHBOURS,
    SCORED_PAIRS,
    TASKS,
    TaskSpec,
)
from use_st5.training.train import exported_prompts
from use_st5.training.validation import with_prompts


def test_counts_lengths_duplicates_and_what_is_cut(table: Callable[..., TrainingFile]) -> None:
    rows = [("a b c", f"word {n}", n % 6) for n in range(12)]
    found = add_statistics(
        table("sts", "sentence1 sentence2 score", [*rows, ("A b C!", "Word 3", 1)]), Words()
    )
    assert (found.rows, found.repetitions, found.score_limits) == (13, (1, 1), (0, 5))
    assert [found.target(score) for score in (0, 2.5, 5)] == [0, 0.5, 1]
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
        ("text label", [("a", "x"), ("b", "x")], "2 to 1,000 different labels, found 1: x"),
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
    rows: tuple[float, float], low: float, middle: float, line: str, tmp_path: Path
) -> None:
    path = tmp_path / "sts.csv"
    path.write_text("sentence1,sentence2,score\n" + "".join(f"a,b,{score}\n" for score in rows))
    found = add_statistics(read_file(path), Words())
    assert found.target(rows[0]) == pytest.approx(low)
    assert found.target(sum(rows) / 2) == pytest.approx(middle)
    assert any(shown.startswith(f"  {line}") for shown in found.lines(9))


def test_a_range_that_is_asked_for() -> None:
    assert score_range("sts.csv", 1, 4, requested=(0, 4)) == (0, 4)
    assert score_range("cos.csv", -0.5, 0.5, requested=(-1, 1)) == (-1, 1)
    with pytest.raises(ValueError, match=r"sts.csv: expected scores from 0 to 3, found 1 to"):
        score_range("sts.csv", 1, 4, requested=(0, 3))


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
        ValueError, match="expected training rows, found only validation or test rows"
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
    with pytest.raises(ValueError, match="not test rows too, found 0"):
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
    with pytest.raises(ValueError, match="expected the labels 0, 1; received .* five"):
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


PAIRS = [{"anchor": f"a {n}", "positive": f"p {n}"} for n in range(5)]


@pytest.mark.parametrize("suffix", ["tsv", "csv", "jsonl", "parquet"])
def test_the_same_rows_out_of_every_format(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"pairs.{suffix}"
    if suffix == "parquet":
        import pyarrow
        from pyarrow import parquet

        parquet.write_table(pyarrow.Table.from_pylist(PAIRS), path)
    elif suffix == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in PAIRS))
    else:
        comma = "," if suffix == "csv" else "\t"
        lines = [comma.join(row.values()) for row in PAIRS]
        path.write_text("\n".join([comma.join(PAIRS[0]), *lines]) + "\n")
    source = read_file(path)
    assert (source.task.name, list(source), list(source)) == ("pairs", PAIRS, PAIRS)


LABELLED: dict[str, list[Any]] = {
    "text": ["t0", "t1", "t2", "t3"],
    "bool": [True, False, True, False],
    "float": [1.0, 0.5, 1.0, 2.0],
    "list": [["joy", "fear"], [], ["joy"], ["it's ü"]],
    "truths": [[True], [], [False], [True, False]],
    "joy": [1, 0, 1, 0],
    "fear": [True, False, False, True],
    "never": [0.0, 0.0, 0.0, 0.0],
}


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "parquet", "DataFrame"])
def test_labels_of_every_type_out_of_every_format(suffix: str, tmp_path: Path) -> None:
    """Numbers and truth values are labels as Python and pandas write them."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(LABELLED)
    path: Any = tmp_path / f"rows.{suffix}"
    if suffix == "DataFrame":
        (path,) = given_files("files", frame)
    elif suffix == "jsonl":
        frame.to_json(path, orient="records", lines=True)
    elif suffix == "tsv":
        frame.to_csv(path, sep="\t", quoting=csv.QUOTE_NONE, index=False)
    else:
        getattr(frame, f"to_{suffix}")(path, index=False)

    def labels(column: str) -> tuple[list[str], TrainingFile]:
        file = read_file(path, columns={"label": column})
        return [row["label"] for row in file], file

    assert labels("bool")[0] == ["True", "False", "True", "False"]
    assert labels("float")[0] == ["1.0", "0.5", "1.0", "2.0"]
    lists, file = labels("list")
    assert [{*(labels_in(each) or ())} for each in lists] == [*map(set, LABELLED["list"])]
    assert file.is_multi_label and file.classes == {"joy": 2, "fear": 1, "it's ü": 1}
    assert labels("truths")[1].classes == {"True": 2, "False": 2}
    flags, file = labels("joy, fear,never")
    assert flags == ['["fear", "joy"]', "[]", '["joy"]', '["fear"]']
    assert file.is_multi_label and file.label_numbers == {"fear": 0, "joy": 1, "never": 2}
    with pytest.raises(ValueError, match="has no anger"):
        labels("joy,anger")
    assert not labels("bool")[1].is_multi_label


def test_rows_with_a_list_of_labels_and_rows_with_one_are_an_error() -> None:
    (rows,) = given_files("files", [{"text": "a", "label": '["x"]'}, {"text": "b", "label": "x"}])
    with pytest.raises(ValueError, match="lists of labels in all rows, or in none"):
        read_file(rows).classes  # noqa: B018
    (rows,) = given_files("files", [{"text": "a", "x": 1, "y": 0}, {"text": "b", "x": 1, "y": 3}])
    with pytest.raises(ValueError, match="'y' is 3, expected 0 or 1"):
        read_file(rows, columns={"label": "x,y"})


def frames() -> dict[str, Any]:
    """The rows of `PAIRS` as the objects of other libraries, if these are installed."""
    import pyarrow
    import tensorflow as tf

    found: dict[str, Any] = {"dicts": PAIRS, "arrow": pyarrow.Table.from_pylist(PAIRS)}
    columns = {name: [row[name] for row in PAIRS] for name in PAIRS[0]}
    found["tf.data"] = tf.data.Dataset.from_tensor_slices(columns)
    for module, name in (("pandas", "DataFrame"), ("polars", "DataFrame")):
        with contextlib.suppress(ImportError):
            found[module] = getattr(importlib.import_module(module), name)(PAIRS)
    with contextlib.suppress(ImportError):
        found["datasets"] = importlib.import_module("datasets").Dataset.from_list(PAIRS)
    return found


def test_rows_in_memory_are_those_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in PAIRS))
    given = frames()
    files = given_files("files", [*given.values(), tmp_path / "a.jsonl"])
    sources = [read_file(each) for each in (*files, *given_files("test", PAIRS))]
    names = ["rows", *(f"rows_{n}" for n in range(2, 1 + len(given)))]
    assert [Path(each.name).stem for each in sources] == [*names, "a", "test_rows"]
    for source in sources:
        assert (source.task.name, list(source)) == ("pairs", PAIRS)
    (again,), (other,) = given_files("files", PAIRS), given_files("files", PAIRS[1:])
    assert read_file(again).content == sources[0].content != read_file(other).content


def test_bad_rows_in_memory_are_counted() -> None:
    (rows,) = given_files("files", [*PAIRS, *PAIRS, {"anchor": "b"}])
    source = read_file(rows)
    assert (source.rows, source.report.malformed_rows) == (10, 1)
    assert source.report.offences == ["rows:11: no text in 'positive'"]


@pytest.mark.parametrize(
    "rows",
    [[{"anchor": "a"}, {"anchor": 3}], {"a", "b"}, [{"anchor": object()}], PAIRS[0], [3], None],
)
def test_rows_that_are_no_table(rows: Any) -> None:
    with pytest.raises(ValueError, match="validation: expected a DataFrame"):
        given_files("validation", rows)


def test_a_file_that_is_no_parquet_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_text("anchor,positive\n")
    with pytest.raises(ValueError, match=r"a\.parquet: expected a parquet file"):
        read_file(tmp_path / "a.parquet")


@pytest.fixture
def moods(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[list[Any]], None]:
    """`moods(rows)` stores texts, labels and weights as the TensorFlow data set "toy_moods"."""
    tfds = pytest.importorskip("tensorflow_datasets", reason="the extra `data` is not installed")
    from tensorflow_datasets.core.utils import file_utils

    monkeypatch.setattr(file_utils, "list_data_dirs", lambda *_, **__: [tmp_path])
    return functools.partial(_store, tfds, tmp_path)


def _store(tfds: Any, folder: Path, rows: list[tuple[str | bytes, int, float]]) -> None:
    features = tfds.features
    names = ("text", "label", "weight")
    tfds.dataset_builders.store_as_tfds_dataset(
        name="toy_moods",
        version="1.0.0",
        features=features.FeaturesDict(
            {
                "text": features.Text(),
                "label": features.ClassLabel(names=["good", "bad"]),
                "weight": features.Scalar(np.float32),
            }
        ),
        split_datasets={"train": [*enumerate(dict(zip(names, row, strict=True)) for row in rows)]},
        data_dir=folder,
        disable_shuffling=True,
    )


def test_a_tensorflow_data_set_is_a_file_like_any_other(moods: Callable[[list[Any]], None]) -> None:
    moods([("Well done!", 0, 1.5), ("What a mess.", 1, 0.0), ("Who knows?", -1, 1.0)])
    source = read_file("toy_moods[train]=2")
    assert (source.task.name, source.mixing_weight, source.content) == (
        "labels", 2.0, "toy_moods[train]",
    )  # fmt: skip
    expected = [{"text": "Well done!", "label": "good"}, {"text": "What a mess.", "label": "bad"}]
    assert ([*source], [*read_file("toy_moods")]) == (expected, expected)
    assert source.report.skipped == {"no label": 1}
    with pytest.raises(ValueError, match="has the splits .'train'., received 'test'"):
        read_file("toy_moods[test]")
    with pytest.raises(ValueError, match="data set, received 'no_such_set'"):
        read_file("no_such_set")


def test_bad_rows_of_a_data_set_are_counted_and_may_be_a_tenth(
    moods: Callable[[list[Any]], None],
) -> None:
    good = [(f"Text {n}", n % 2, 0.0) for n in range(27)]
    moods([*good[:5], (b"\xff\xfe", 0, 0.0), *good[5:], (" ", 1, 0.0)])
    source = read_file("toy_moods")
    assert [row["text"] for row in source] == [text for text, _, _ in good]
    assert source.report.offences == [
        "toy_moods:6: invalid utf-8", "toy_moods:29: no text in 'text'",
    ]  # fmt: skip
    assert (source.report.rows, source.report.malformed_rows) == (27, 2)
    with pytest.raises(ValueError, match=r"at most 10\.00% malformed rows, found 11\.11%"):
        list(read_file("toy_moods[train[:9]]"))


def test_bad_rows_are_left_out_and_named(tmp_path: Path) -> None:
    path = tmp_path / "sts.tsv"
    good = [f"a {n}\tb {n}\t{n / 10}" for n in range(30)]
    path.write_text(
        "\n".join(["sentence1\tsentence2\tscore", *good, "a\tb\tmuch", "\tb\t1"]) + "\n"
    )
    source = read_file(path)
    rows = list(source)
    assert (len(rows), rows[3]["score"]) == (30, 0.3)
    assert source.report.offences == [
        f"{path}:32: 'score' is not a number: 'much'",
        f"{path}:33: no text in 'sentence1'",
    ]
    path.write_text("sentence1\tsentence2\tscore\na\tb\t1\nc\td\tnan\n")
    with pytest.raises(ValueError, match="found 50.00%"):
        list(read_file(path))


def test_rows_that_are_all_bad_are_not_an_empty_file(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    path.write_text("\n[1]\n" + "{'anchor': 'a'}\n" * 6)
    with pytest.raises(ValueError, match=r"found 7 malformed .*pairs\.jsonl:2: a JSON array"):
        read_file(path)


def test_the_column_that_is_asked_for_comes_before_others(tmp_path: Path) -> None:
    path = tmp_path / "faq.csv"
    path.write_text("title,anchor,body\nOne?,no,Yes.\n")
    source = read_file(path, columns={"anchor": "title", "positive": "body"})
    assert list(source) == [{"anchor": "One?", "positive": "Yes."}]


def test_a_text_runs_on_or_is_a_sentence_a_line(tmp_path: Path) -> None:
    lines = tmp_path / "lines.txt"
    lines.write_text("One sentence here.\nAnother one there.\nAnd a third one.\n")
    source = read_file(lines)
    assert source.task.name == "texts"
    assert [row["text"] for row in source][1] == "Another one there."
    novel = tmp_path / "novel.txt"
    novel.write_text("It was dark. She came in. He left. Nobody knew.\n\nThe end came. It did.\n")
    source = read_file(novel)
    assert source.task.name == "neighbours"
    first = next(iter(source))
    assert first == {"previous": "It was dark.", "text": "She came in.", "next": "He left."}
    assert read_file(novel, task="texts").task.name == "texts"


def test_one_file_of_several_may_have_a_task_of_its_own(tmp_path: Path) -> None:
    path, other = tmp_path / "lines.txt", tmp_path / "other.txt"
    for each in (path, other):
        each.write_text("It rains.\nWe stay in.\nTea is made.\nNobody calls.\n")
    tasks = {str(path): "neighbours"}
    asked = read_file(f"{path}=2", task=tasks)
    assert (asked.task.name, asked.mixing_weight) == ("neighbours", 2.0)
    assert [row["text"] for row in asked] == ["We stay in.", "Tea is made."]
    assert read_file(other, task=tasks).task.name == "texts"


def test_a_published_table_may_be_called_txt(tmp_path: Path) -> None:
    path = tmp_path / "SICK_train.txt"
    names = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment"
    path.write_text(f"{names}\n1\tA dog runs\tA dog sits\t3.5\tNEUTRAL\n")
    with pytest.raises(ValueError, match="fit scored_pairs and inference"):
        read_file(path)
    rows = [*read_file(path, task="inference")]
    assert rows == [{"premise": "A dog runs", "hypothesis": "A dog sits", "label": "NEUTRAL"}]


def test_rates_stand_behind_the_name(tmp_path: Path) -> None:
    path = tmp_path / "pairs=2.jsonl"
    path.write_text(json.dumps(PAIRS[0]) + "\n")
    assert read_file(path).mixing_weight is None
    assert read_file(f"{path}=0.5").mixing_weight == 0.5
    with pytest.raises(ValueError, match="expected a weight above 0 after '=', received -1"):
        read_file(f"{path}=-1")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty.tsv", "", "expected rows with named columns, found an empty file"),
        ("blank.csv", "\n\n", "expected rows with named columns, found an empty file"),
        ("a.xml", "<a/>", "expected a name that ends in one of"),
        ("a.xlsx", "PK", "a.xlsx: received a spreadsheet. Save"),
        ("a.json", '[{"text": "a"}]', r"a.json: .* JSON array, expected an object"),
        ("b.json", '[\n{"text": "a"},\n{"text": "b"}\n]', r"b.json:1: a JSON array"),
        ("my.csv", "my q,a\n1,2\n", "--column 'anchor=my q' --column positive=a"),
        ("one.csv", "body\n1\n", r"keys of a task: --column text=body\."),
        ("empty.txt", "", "expected running text, found no sentence"),
    ],
)
def test_files_that_teach_nothing(name: str, content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(ValueError, match=message):
        read_file(tmp_path / name)


@pytest.mark.parametrize("name", ["absent.tsv", "absent.txt", "Absent folder"])
def test_a_file_that_is_not_there(name: str) -> None:
    with pytest.raises(FileNotFoundError, match="expected a file"):
        read_file(name)


def test_a_text_has_the_tasks_of_ones_own(tmp_path: Path) -> None:
    texts = dataclasses.replace(TASKS["texts"], description="mine")
    lines = dataclasses.replace(texts, name="lines", columns={"line": ("Text",)}, features={})
    tasks = TASKS | {"texts": texts, "lines": lines}
    path = tmp_path / "a.txt"
    path.write_text("One line\nAnother line\n")
    assert read_file(path, tasks=tasks).task is texts
    source = read_file(path, tasks=tasks, task="lines")
    assert (source.task, [*source]) == (lines, [{"line": "One line"}, {"line": "Another line"}])


def test_own_tasks_in_the_place_of_others_are_read_like_these(tmp_path: Path) -> None:
    """Running texts become sentences with their neighbours; single sentences do not."""
    mine = {n: dataclasses.replace(TASKS[n], description="mine") for n in ("neighbours", "texts")}
    (tmp_path / "prose.csv").write_text("text\n" + '"One. Two. Three."\n' * 3)
    (tmp_path / "single.csv").write_text("text\n" + "One.\n" * 3)
    prose, single = (
        read_file(tmp_path / f"{n}.csv", tasks=TASKS | mine) for n in ("prose", "single")
    )
    assert (prose.task, single.task) == (mine["neighbours"], mine["texts"])
    assert [*prose] == [{"previous": "One.", "text": "Two.", "next": "Three."}] * 3
    assert len(prose.pair_keys) == 3


# Prompts by column.

PAIR = TASKS["pairs"]
FAQ = {"anchor": "title", "positive": "body", "negative": "negative"}
Q, P = "query: ", "passage: "


def source(kind: TaskSpec, columns: Mapping[str, str], given: Prompts) -> TrainingFile:
    return TrainingFile("absent.tsv", kind, columns, prompts=prompts_by_key(given, kind, columns))


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({}, {}),
        ("", {}),
        (Q, {"anchor": Q, "positive": Q, "negative": Q}),
        ({"anchor": Q, "positive": P}, {"anchor": Q, "positive": P}),
        ({"title": Q, "negative": P, "positive": ""}, {"anchor": Q, "negative": P}),
    ],
)
def test_a_column_is_named_by_its_key_or_as_in_the_file(
    given: Prompts, found: dict[str, str]
) -> None:
    assert prompts_by_key(given, PAIR, FAQ) == found


def test_scores_and_labels_are_no_texts() -> None:
    columns = {"sentence1": "sentence1", "sentence2": "sentence2", "score": "score"}
    assert prompts_by_key(Q, SCORED_PAIRS, columns) == {"sentence1": Q, "sentence2": Q}


def test_columns_that_no_file_has_are_refused() -> None:
    sources = [
        source(PAIR, FAQ, ""),
        source(LABELS, {"text": "text", "label": "label"}, ""),
    ]
    for known in (Q, {"title": Q, "positive": P, "text": Q}):
        check_prompts(known, sources)
    with pytest.raises(ValueError, match="title, positive, body, negative, text; received label."):
        check_prompts({"anchor": Q, "label": P}, sources)


def test_the_prompt_stands_before_the_text_and_a_row_may_lack_one() -> None:
    row = {"anchor": "a", "positive": "b", "score": 1.0}
    found = with_prompts(row, {"anchor": Q, "negative": P})
    assert found == {"anchor": "query: a", "positive": "b", "score": 1.0}
    assert row["anchor"] == "a"


PREMISE = {"premise": "premise", "hypothesis": "hypothesis", "label": "label"}


@pytest.mark.parametrize(
    ("sources", "named", "default"),
    [
        ([(PAIR, FAQ, {})], {}, None),
        ([(PAIR, FAQ, Q)], {"query": Q, "document": Q}, "query"),
        ([(LABELS, {"text": "text"}, {"text": Q})], {"query": Q, "document": Q}, "query"),
        ([(NEIGHBOURS, {"text": "text"}, Q)], {"query": Q, "document": Q}, "query"),
        ([(PAIR, FAQ, {"anchor": Q, "positive": P})], {"query": Q, "document": P}, None),
        # Only questions have a prompt: documents get none, even if the start had one.
        ([(PAIR, FAQ, {"anchor": Q})], {"query": Q, "document": ""}, None),
        ([(INFERENCE, PREMISE, {"premise": Q, "hypothesis": P})],
         {"premise": Q, "hypothesis": P}, None),
        ([(PAIR, FAQ, {"anchor": Q, "positive": P}), (LABELS, {"text": "text"}, {"text": "t: "})],
         {"query": Q, "document": P, "text": "t: "}, None),
    ],
)  # fmt: skip
def test_what_the_trained_model_keeps(
    sources: list[tuple[TaskSpec, Mapping[str, str], Prompts]],
    named: dict[str, str],
    default: str | None,
) -> None:
    assert exported_prompts([source(*each) for each in sources]) == (named, default)
