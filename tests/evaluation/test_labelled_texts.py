from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from use_st5.data.data_folder import DataFolder, DataSource
from use_st5.encode.vector_store import VectorCache
from use_st5.evaluation.labelled_texts import LabelledDataset, LabelledTexts, TableLayout


def test_rows_keep_sentences_beside_their_labels() -> None:
    texts = LabelledTexts((["a", "b", "c"], ["d", "e", "f"]), np.array([0, 1, 2]))
    chosen = texts.rows(np.array([2, 0]))
    assert chosen.columns == (["c", "a"], ["f", "d"])
    assert chosen.labels.tolist() == [2, 0]
    assert len(chosen) == 2
    assert texts.rows(texts.labels > 0).columns == (["b", "c"], ["e", "f"])


def test_columns_and_labels_must_match() -> None:
    with pytest.raises(ValueError, match=r"received 1 labels and columns of \[1, 2\] sentences"):
        LabelledTexts((["a"], ["b", "c"]), np.array([0]))


def test_a_sentence_without_text_is_embedded_as_a_full_stop() -> None:
    asked = []

    def encode(sentences: list[str]) -> np.ndarray:
        asked.extend(sentences)
        return np.array([[len(sentence)] for sentence in sentences])

    texts = LabelledTexts((["ab", ""], ["", "abc"]), np.array([0, 1]))
    first, second = texts.embedded(VectorCache(encode))
    assert (first.tolist(), second.tolist()) == ([[2], [1]], [[1], [3]])
    assert sorted(asked) == [".", "ab", "abc"]


PAIRS = TableLayout(("one", "two"), "label", ("no", "yes"))


NO_HEADER = TableLayout((3,), 1, ("bad", "good"))


def write(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    return path


def test_columns_are_found_by_name_and_quotes_are_text(tmp_path: Path) -> None:
    path = write(
        tmp_path / "dev.tsv",
        '\ufefflabel\tidx\ttwo\tone\r\nyes\t0\t"b\tc "d" \r\n\r\n0\t1\td\u2028e\tf\x85\r\n',
    )
    texts = PAIRS.read(path)
    assert texts.columns == (['c "d"', "f"], ['"b', "d\u2028e"])
    assert texts.labels.tolist() == [1, 0]
    assert texts.labels.dtype.kind == "i"
    assert texts.broken_lines == 0


def test_columns_without_header_and_several_files(tmp_path: Path) -> None:
    write(tmp_path / "a.tsv", "x\t1\t\tGood one.\nx\t0\t*\tOne bad.\n")
    write(tmp_path / "b.tsv", "y\t1\t\tLast.")
    files = tuple((DataSource(each, (each,), ""), NO_HEADER.read) for each in ("a.tsv", "b.tsv"))
    texts = LabelledDataset("ab", files).read_part(DataFolder(tmp_path), "train")
    assert texts.columns == (["Good one.", "One bad.", "Last."],)
    assert texts.labels.tolist() == [1, 0, 1]


def test_scores(tmp_path: Path) -> None:
    layout = TableLayout(("one",), "score")
    path = write(tmp_path / "a.tsv", "one\tscore\na\t4.25\nb\t0\n")
    assert layout.read(path).labels.tolist() == [4.25, 0.0]
    with pytest.raises(ValueError, match=r"a\.tsv:3: expected a score .*, received ''"):
        layout.read(write(path, "one\tscore\na\t4.25\nb\t\n"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("one\tlabel\na\tyes\n", r"dev\.tsv:1: expected the columns one, two, label; two missing"),
        ("", r"dev\.tsv:1: .* one, two, label missing"),
        ("one\ttwo\tlabel\n", r"dev\.tsv: expected labelled sentences, found none"),
        (
            "one\ttwo\tlabel\na\tb\tno\na\tb\n",
            r"dev\.tsv:3: expected 3 tab-separated fields, received 2: 'a\\tb'",
        ),
        ("one\ttwo\tlabel\na\t\tb\tno\n", r"dev\.tsv:2: expected 3 .* received 4: 'a\\t\\tb"),
        (
            "one\ttwo\tlabel\na\tb\tperhaps\n",
            r"dev\.tsv:2: expected a label \(no or 0, yes or 1\), received 'perhaps'\.$",
        ),
        ("one\ttwo\tlabel\na\tb\t2\n", r"dev\.tsv:2: .* received '2'"),
        ("one\ttwo\tlabel\na\tb\t-1\n", "received '-1'. GLUE's test files have no labels"),
        ("one\ttwo\tlabel\na\tb\t\n", r"dev\.tsv:2: .* received ''"),
    ],
)
def test_errors_name_file_and_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PAIRS.read(write(tmp_path / "dev.tsv", text))


def test_missing_file_and_wrong_encoding(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"none\.tsv: expected a file"):
        PAIRS.read(tmp_path / "none.tsv")
    (tmp_path / "a.tsv").write_bytes(b"x\t1\t\t\xff\n")
    with pytest.raises(ValueError, match=r"a\.tsv:\d+: expected UTF-8"):
        NO_HEADER.read(tmp_path / "a.tsv")


def test_a_few_broken_lines_are_left_out_where_the_layout_allows_it(tmp_path: Path) -> None:
    layout = TableLayout(("one", "two"), "label", ("no", "yes"), most_broken=2)
    # A line feed inside a question breaks its line in two.
    text = "one\ttwo\tlabel\na\tb\tno\nc\td begins\nand ends\tyes\ne\tf\tyes\n"
    texts = layout.read(write(tmp_path / "train.tsv", text))
    assert texts.columns == (["a", "e"], ["b", "f"])
    assert texts.labels.tolist() == [0, 1]
    assert texts.broken_lines == 2
    with pytest.raises(ValueError, match=r"train\.tsv:6: .* received 1: 'g' At most 2 such lines"):
        layout.read(write(tmp_path / "train.tsv", text + "g\n"))
