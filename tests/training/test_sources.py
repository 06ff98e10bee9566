"""Files as rows of one task each."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import importlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from use_st5.training.rows import (
    Prompts,
    TrainingFile,
    check_prompts,
    given_files,
    prompts_by_key,
    read_file,
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
    with pytest.raises(ValueError, match="validation: expected rows .* Give a DataFrame"):
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


@pytest.mark.parametrize("score", ["9" * 400, "1e999", "NaN"])
def test_a_score_beyond_all_numbers_is_a_bad_row(score: str, tmp_path: Path) -> None:
    path = tmp_path / "sts.jsonl"
    row = '{"sentence1": "a", "sentence2": "b", "score": %s}\n'
    path.write_text("".join(row % value for value in [*map(str, range(9)), score, "7"]))
    source = read_file(path)
    assert [each["score"] for each in source] == [*range(9), 7]
    assert source.report.offences == [f"{path}:10: 'score' is not a finite number"]


def test_rows_that_are_all_bad_are_not_an_empty_file(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    path.write_text("\n[1]\n" + "{'anchor': 'a'}\n" * 6)
    with pytest.raises(ValueError, match=r"found 7 malformed .*pairs\.jsonl:2: a JSON array"):
        read_file(path)


def test_a_file_is_read_once_and_may_change_afterwards(tmp_path: Path) -> None:
    path = tmp_path / "topics.tsv"
    path.write_text("text\tlabel\na b\tone\nc d\ttwo\n")
    source = read_file(path)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert (len(list(source)), source.content) == (2, digest)
    with path.open("a") as file:
        file.write("e\tthree\n")
    assert (len(list(source)), source.content) == (2, digest)


def test_labels_are_words_or_numbers(tmp_path: Path) -> None:
    path = tmp_path / "topics.jsonl"
    path.write_text('{"text": "a b", "label": 1}\n{"text": "c", "label": "two"}\n')
    assert [row["label"] for row in read_file(path)] == ["1", "two"]


def test_own_names_of_columns(tmp_path: Path) -> None:
    path = tmp_path / "faq.csv"
    path.write_text("Title,body,id\nOne?,Yes.,1\n")
    source = read_file(path, columns={"anchor": "title", "positive": "body"})
    assert list(source) == [{"anchor": "One?", "positive": "Yes."}]
    with pytest.raises(ValueError, match="expected the columns of a task, found 'Title', 'body'"):
        read_file(path)


def test_the_column_that_is_asked_for_comes_before_others(tmp_path: Path) -> None:
    path = tmp_path / "faq.csv"
    path.write_text("title,anchor,body\nOne?,no,Yes.\n")
    source = read_file(path, columns={"anchor": "title", "positive": "body"})
    assert list(source) == [{"anchor": "One?", "positive": "Yes."}]


def test_names_of_columns_may_have_spaces_around_them(tmp_path: Path) -> None:
    path = tmp_path / "faq.csv"
    path.write_text("anchor, positive\nOne?,Yes.\n")
    assert list(read_file(path)) == [{"anchor": "One?", "positive": "Yes."}]


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


def test_a_column_of_text_runs_on_or_is_single(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "It rained. We stayed. Then we left."}\n')
    source = read_file(path)
    assert source.task.name == "neighbours"
    assert list(source) == [
        {"previous": "It rained.", "text": "We stayed.", "next": "Then we left."}
    ]
    path.write_text('{"text": "A title"}\n{"text": "Another title."}\n')
    assert read_file(path).task.name == "texts"


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
