from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from use_st5.data.data_folder import DataFolder, MissingDataError
from use_st5.evaluation.glue import readers
from use_st5.evaluation.glue.readers import GlueDataset, LabelledTexts, TableLayout
from use_st5.vector_store import VectorCache


def test_rows_keep_sentences_beside_their_labels() -> None:
    texts = LabelledTexts((["a", "b", "c"], ["d", "e", "f"]), np.array([0, 1, 2]))
    chosen = texts.rows(np.array([2, 0]))
    assert chosen.columns == (["c", "a"], ["f", "d"])
    assert chosen.labels.tolist() == [2, 0]
    assert len(chosen) == 2


def test_columns_and_labels_must_match() -> None:
    with pytest.raises(ValueError, match=r"received 1 labels and columns of \[1, 2\] sentences"):
        LabelledTexts((["a"], ["b", "c"]), np.array([0]))
    with pytest.raises(ValueError, match="at least one"):
        LabelledTexts(([],), np.array([]))


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
    first = write(tmp_path / "a.tsv", "x\t1\t\tGood one.\nx\t0\t*\tOne bad.\n")
    second = write(tmp_path / "b.tsv", "y\t1\t\tLast.")
    texts = NO_HEADER.read(first, second)
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
        ("one\ttwo\tlabel\n", r"dev\.tsv: expected rows with sentences and labels, found none"),
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


DATASET = GlueDataset(
    "Toy",
    ("Toy/train.tsv", "elsewhere/raw/train.txt"),
    ("Toy/dev.tsv", "elsewhere/raw"),
    (TableLayout(("text",), "label", ("a", "b")), TableLayout((1,), 0, ("a", "b"))),
    origin="the toy shop",
    parts=("one.txt", "two.txt"),
)


def write_of_dataset(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def test_each_place_is_read_in_its_layout(tmp_path: Path) -> None:
    write_of_dataset(tmp_path / "x" / "elsewhere" / "raw" / "train.txt", "a\tone\nb\ttwo\n")
    write_of_dataset(tmp_path / "x" / "elsewhere" / "raw" / "two.txt", "b\tfour\n")
    write_of_dataset(tmp_path / "x" / "elsewhere" / "raw" / "one.txt", "a\tthree\n")
    data = DataFolder(tmp_path)
    assert DATASET.read_train(data).columns == (["one", "two"],)
    assert DATASET.read_dev(data).columns == (["three", "four"],)
    # GLUE's own layout comes first where both are there.
    write_of_dataset(tmp_path / "glue" / "Toy" / "train.tsv", "text\tlabel\nfive\tb\n")
    assert DATASET.read_train(data).columns == (["five"],)
    assert DATASET.read_train(data).labels.tolist() == [1]


def test_missing_data_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(
        MissingDataError, match=r"GLUE Toy dev: expected Toy/dev\.tsv or .* from the toy shop"
    ):
        DATASET.read_dev(DataFolder(tmp_path))
    write_of_dataset(tmp_path / "elsewhere" / "raw" / "one.txt", "a\tthree\n")
    with pytest.raises(FileNotFoundError, match=r"two\.txt: expected a file"):
        DATASET.read_dev(DataFolder(tmp_path))


# A header as published and two rows; what must be read of them.
NLI_HEAD = (
    "index\tpromptID\tpairID\tgenre\tsentence1_binary_parse\tsentence2_binary_parse\t"
    "sentence1_parse\tsentence2_parse\tsentence1\tsentence2\tlabel1\t"
)
NLI_ROW = "0\t1\t1n\tslate\t( a\t( b\t(ROOT\t(ROOT\tThe new\tEveryone\tneutral\t"
STSB_HEAD = "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore"
PUBLISHED = {
    "CoLA": (
        readers.COLA,
        "dev.tsv",
        "gj04\t1\t\tThe sailors rode.\ngj04\t0\t*\tThe rode.\n",
        (["The sailors rode.", "The rode."],),
        [1, 0],
    ),
    "SST-2": (
        readers.SST2,
        "dev.tsv",
        "sentence\tlabel\nit 's a charming journey . \t1\nbleak \t0\n",
        (["it 's a charming journey .", "bleak"],),
        [1, 0],
    ),
    "MRPC": (
        readers.MRPC,
        "dev.tsv",
        "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t7\t8\tHe said .\tHe says .\n"
        '0\t9\t10\t" A .\tB . "\n',
        (["He said .", '" A .'], ["He says .", 'B . "']),
        [1, 0],
    ),
    "STS-B": (
        readers.STSB,
        "dev.tsv",
        f"{STSB_HEAD}\n0\tmain-captions\tMSRvid\t2012test\t0000\tnone\tnone\tA hat.\tHats.\t4.7\n",
        (["A hat."], ["Hats."]),
        [4.7],
    ),
    "QQP": (
        readers.QQP,
        "dev.tsv",
        "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n1\t2\t3\tWhy?\tHow?\t0\n4\t5\t6\tA\tB\t1\n",
        (["Why?", "A"], ["How?", "B"]),
        [0, 1],
    ),
    "MNLI": (
        readers.MNLI_MATCHED,
        "dev_matched.tsv",
        f"{NLI_HEAD}label2\tlabel3\tlabel4\tlabel5\tgold_label\n"
        f"{NLI_ROW}entailment\tneutral\tneutral\tneutral\tneutral\n",
        (["The new"], ["Everyone"]),
        [1],
    ),
    "MNLI train": (
        readers.MNLI_MISMATCHED,
        "train.tsv",
        f"{NLI_HEAD}gold_label\n{NLI_ROW}contradiction\n{NLI_ROW}entailment\n",
        (["The new", "The new"], ["Everyone", "Everyone"]),
        [2, 0],
    ),
    "QNLI": (
        readers.QNLI,
        "dev.tsv",
        "index\tquestion\tsentence\tlabel\n0\tWhat?\tThat.\tentailment\n1\tWho?\tX.\tnot_entailment\n",
        (["What?", "Who?"], ["That.", "X."]),
        [0, 1],
    ),
    "RTE": (
        readers.RTE,
        "dev.tsv",
        "index\tsentence1\tsentence2\tlabel\n0\tA.\tB.\tnot_entailment\n1\tC.\tD.\tentailment\n",
        (["A.", "C."], ["B.", "D."]),
        [1, 0],
    ),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_layouts(tmp_path: Path, name: str) -> None:
    dataset, file, text, columns, labels = PUBLISHED[name]
    path = tmp_path / name.split()[0] / file
    path.parent.mkdir()
    path.write_text(text, encoding="utf-8")
    data = DataFolder(tmp_path)
    read = dataset.read_train(data) if file == "train.tsv" else dataset.read_dev(data)
    assert read.columns == columns
    assert read.labels.tolist() == labels


# Rows, and rows of class 1. The numbers of rows are those of GLUE.
REAL: dict[str, tuple[GlueDataset, tuple[int, int], tuple[int, int]]] = {
    "CoLA": (readers.COLA, (8551, 6023), (1043, 719)),  # the files of the corpus itself
    "SST-2": (readers.SST2, (67349, 37569), (872, 444)),
    "RTE": (readers.RTE, (2490, 1241), (277, 131)),
}


@pytest.mark.parametrize("name", REAL)
def test_real_counts(data_dir: Path, name: str) -> None:
    dataset, train, dev = REAL[name]
    data = DataFolder(data_dir)
    for counts, texts in ((train, dataset.read_train(data)), (dev, dataset.read_dev(data))):
        assert (len(texts), int((texts.labels == 1).sum())) == counts
        assert set(texts.labels.tolist()) == {0, 1}
        assert all(sentence for column in texts.columns for sentence in column)


def test_real_stsb_is_glue_s(data_dir: Path) -> None:
    data = DataFolder(data_dir)
    train, dev = readers.STSB.read_train(data), readers.STSB.read_dev(data)
    assert (len(train), len(dev)) == (5749, 1500)
    assert train.columns[0][0] == "A plane is taking off."
    assert train.columns[1][0] == "An air plane is taking off."
    assert train.labels[:2].tolist() == [5.0, 3.8]
    for texts in (train, dev):
        assert np.isfinite(texts.labels).all()
        assert (texts.labels.min(), texts.labels.max()) == (0.0, 5.0)
