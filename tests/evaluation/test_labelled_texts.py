"""Published text files, line by line, and labelled texts."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.evaluation.toys import letter_context
from use_st5.data.data_folder import DataFolder, DataSource
from use_st5.encode.vector_store import VectorCache
from use_st5.evaluation.classification import probing_task, read_probing
from use_st5.evaluation.classifiers import SentEvalClassifier
from use_st5.evaluation.labelled_texts import (
    LabelledDataset,
    LabelledTexts,
    numbered_lines,
    parse_score,
    read_columns,
    read_side_by_side,
    read_table,
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "file.tsv"


def test_lines_end_at_line_feeds_alone_and_numbers_count_blank_lines(file: Path) -> None:
    # str.splitlines splits at these characters; here they are parts of a sentence.
    file.write_bytes("\ufeffa\r\n\n \t\nb\u2028c\x85d\x0be\x1cf".encode())
    assert numbered_lines(file) == [(1, "a"), (4, "b\u2028c\x85d\x0be\x1cf")]


def test_side_by_side(file: Path) -> None:
    other = file.with_name("other.tsv")
    file.write_text("a\n\nb\n")
    other.write_text("1\n2\n3\n")
    assert read_side_by_side(file, other) == [(1, "a", "1"), (2, "", "2"), (3, "b", "3")]
    other.write_text("1\n2\n")
    assert read_side_by_side(file, other, first=2) == [(1, "a", "1"), (2, "", "2")]
    with pytest.raises(ValueError, match=r"other\.tsv: expected 3 lines.* file\.tsv .* received 2"):
        read_side_by_side(file, other)


def test_columns_by_name(file: Path) -> None:
    file.write_text("id\tsecond\tfirst\n\n1\tb\ta\n2\td\tc\n")
    assert read_columns(file, ("first", "second")) == ([(3, ["a", "b"]), (4, ["c", "d"])], 0)
    with pytest.raises(ValueError, match=r"file\.tsv:1: expected the columns gold, id; gold miss"):
        read_columns(file, ("gold", "id"))
    for row in ("2\td", "2\t\td\tc"):
        file.write_text(f"id\tsecond\tfirst\n1\tb\ta\n{row}\n")
        with pytest.raises(ValueError, match=r"file\.tsv:3: expected 3 tab-separated fields"):
            read_columns(file, ("first",))
    file.write_text("")
    with pytest.raises(ValueError, match="id missing"):
        read_columns(file, ("id",))


def test_scores(file: Path) -> None:
    assert parse_score(file, 1, " 4.250\r") == 4.25
    for text in ("", "high", "nan", "inf", "4,2", "-0.1", "5.01"):
        with pytest.raises(ValueError, match=rf"file\.tsv:3: .* from 0 to 5, received '{text}'"):
            parse_score(file, 3, text)


def test_a_sentence_without_text_is_embedded_as_a_full_stop() -> None:
    asked = []

    def encode(sentences: list[str]) -> np.ndarray:
        asked.extend(sentences)
        return np.array([[len(sentence)] for sentence in sentences])

    texts = LabelledTexts((["ab", ""], ["", "abc"]), np.array([0, 1]))
    first, second = texts.embedded(VectorCache(encode))
    assert (first.tolist(), second.tolist()) == ([[2], [1]], [[1], [3]])
    assert sorted(asked) == [".", "ab", "abc"]


def pairs(path: Path, **options: int) -> LabelledTexts:
    return read_table(path, ("one", "two"), "label", ("no", "yes"), **options)


def no_header(path: Path) -> LabelledTexts:
    return read_table(path, (3,), 1, ("bad", "good"))


def write(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    return path


def test_columns_are_found_by_name_and_quotes_are_text(tmp_path: Path) -> None:
    path = write(
        tmp_path / "dev.tsv",
        '\ufefflabel\tidx\ttwo\tone\r\nyes\t0\t"b\tc "d" \r\n\r\n0\t1\td\u2028e\tf\x85\r\n',
    )
    texts = pairs(path)
    assert texts.columns == (['c "d"', "f"], ['"b', "d\u2028e"])
    assert texts.labels.tolist() == [1, 0]
    assert texts.labels.dtype.kind == "i"
    assert texts.broken_lines == 0


def test_columns_without_header_and_several_files(tmp_path: Path) -> None:
    write(tmp_path / "a.tsv", "x\t1\t\tGood one.\nx\t0\t*\tOne bad.\n")
    write(tmp_path / "b.tsv", "y\t1\t\tLast.")
    files = tuple((DataSource(each, (each,), ""), no_header) for each in ("a.tsv", "b.tsv"))
    texts = LabelledDataset("ab", files).read_part(DataFolder(tmp_path), "train")
    assert texts.columns == (["Good one.", "One bad.", "Last."],)
    assert texts.labels.tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("one\tlabel\na\tyes\n", r"dev\.tsv:1: expected the columns one, two, label; two missing"),
        ("one\ttwo\tlabel\n", r"dev\.tsv: expected labelled sentences, found none"),
        ("one\ttwo\tlabel\na\tb\tperhaps\n", r"dev\.tsv:2: expected a label .*'perhaps'\.$"),
        ("one\ttwo\tlabel\na\tb\t2\n", r"dev\.tsv:2: .* received '2'"),
        ("one\ttwo\tlabel\na\tb\t-1\n", "received '-1'; GLUE's test files have no labels"),
    ],
)
def test_errors_name_file_and_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pairs(write(tmp_path / "dev.tsv", text))


def test_a_few_broken_lines_are_left_out_where_the_layout_allows_it(tmp_path: Path) -> None:
    # A line feed inside a question breaks its line in two.
    text = "one\ttwo\tlabel\na\tb\tno\nc\td begins\nand ends\tyes\ne\tf\tyes\n"
    texts = pairs(write(tmp_path / "train.tsv", text), most_broken=2)
    assert texts.columns == (["a", "e"], ["b", "f"])
    assert texts.labels.tolist() == [0, 1]
    assert texts.broken_lines == 2
    with pytest.raises(ValueError, match=r"train\.tsv:6: .* received 1: 'g'"):
        pairs(write(tmp_path / "train.tsv", text + "g\n"), most_broken=2)


GOOD = (
    "tr\tPRES\tShe sings .\nva\tPAST\tHe sang .\ntr\tPAST\tThey ran .\nte\tPRES\tWe run .\r\n"
    "te\tPAST\tmain verb\tI saw\u2028it .\n"
)


def write_probing(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "past_present.txt"
    path.write_bytes(text.encode())
    return path


def test_parts_and_classes(tmp_path: Path) -> None:
    data = read_probing(write_probing(tmp_path, GOOD))
    assert {part: texts.columns for part, texts in data.items()} == {
        "train": (["She sings .", "They ran ."],),
        "dev": (["He sang ."],),
        "test": (["We run .", "I saw\u2028it ."],),
    }
    # PAST is 0, PRES is 1.
    labels = {part: texts.labels.tolist() for part, texts in data.items()}
    assert labels == {"train": [1, 0], "dev": [0], "test": [1, 0]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GOOD + "te\tPAST\n", r"present\.txt:6: expected at least 3 .* received 2: 'te\\tPAST'"),
        (GOOD + "dev\tPAST\tHe ran .\n", "expected lines of tr, va and te"),
        (GOOD + "te\tFUT\tHe will .\n", "all classes in tr"),
        ("", "expected lines of tr, va and te"),
    ],
)
def test_errors_name_file_and_line_of_probing(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_probing(write_probing(tmp_path, text))


TASK = probing_task("toy", "Toy", "toy.txt")


def write_tasks(folder: Path, name: str) -> None:
    (folder / "probing").mkdir()
    lines = [
        f"{part}\t{'NO' if n % 2 else 'YES'}\t{'xy'[n % 2]} {n % 9}"
        for part, count in (("tr", 200), ("va", 50), ("te", 40))
        for n in range(count)
    ]
    (folder / "probing" / name).write_text("\n".join(lines), encoding="utf-8")


def test_result(tmp_path: Path) -> None:
    write_tasks(tmp_path, "toy.txt")
    result = TASK.run(letter_context(tmp_path, seed=7))
    assert result.main == "accuracy"
    assert result.scores == {"accuracy": 1.0, "dev_accuracy": 1.0}
    assert result.counts == {"classes": 2, "train": 200, "dev": 50, "test": 40}
    assert result.details["classifier"] == SentEvalClassifier(seed=7).options()
    assert result.details["l2"] in (1e-5, 1e-4, 1e-3, 1e-2)
    json.dumps(result.details)
