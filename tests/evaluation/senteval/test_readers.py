from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from use_st5.data.data_folder import DataFolder, MissingDataError
from use_st5.evaluation.senteval import TransferSample, readers
from use_st5.evaluation.senteval.readers import (
    TransferDataset,
    read_binary_sentiment,
    read_entailment,
    read_fine_sentiment,
    read_mrpc,
    read_sentences,
    read_trec,
)

MRPC = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\r\n"
SICK = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n"


def write(path: Path, text: str, encoding: str = "utf-8") -> Path:
    path.write_bytes(text.encode(encoding))
    return path


def test_one_sentence_a_line_empty_ones_too(tmp_path: Path) -> None:
    path = write(tmp_path / "rt-polarity.pos", "a  caf\xe9 .\n\nb\n", "latin-1")
    assert read_sentences(path, label=1) == [
        TransferSample(("a caf\xe9 .",), 1),
        TransferSample(("",), 1),
        TransferSample(("b",), 1),
    ]


def test_sst_binary(tmp_path: Path) -> None:
    path = write(tmp_path / "sentiment-dev", "it 's caf\xe9 . \t1\nbleak \t0\n")
    expected = [TransferSample(("it 's caf\xe9 .",), 1), TransferSample(("bleak",), 0)]
    assert read_binary_sentiment(path) == expected


def test_sst_fine(tmp_path: Path) -> None:
    path = write(tmp_path / "sentiment-dev", "4 a\xa0b .\n0 c\n")
    assert read_fine_sentiment(path) == [TransferSample(("a b .",), 4), TransferSample(("c",), 0)]


def test_trec_has_its_coarse_classes_and_latin_text(tmp_path: Path) -> None:
    path = write(tmp_path / "x.label", "DESC:manner How : a ?\nNUM:dist \xf0 ?\n", "latin-1")
    assert read_trec(path) == [TransferSample(("How : a ?",), 1), TransferSample(("\xf0 ?",), 5)]


def test_mrpc_has_a_byte_order_mark_and_quotation_marks(tmp_path: Path) -> None:
    path = write(tmp_path / "x.txt", "\ufeff" + MRPC + '1\t7\t8\tA " b\tc\r\n0\t9\t7\td\te " f\r\n')
    assert read_mrpc(path) == [TransferSample(('A " b', "c"), 1), TransferSample(("d", 'e " f'), 0)]


def test_sick_entailment(tmp_path: Path) -> None:
    rows = "1\ta b\tc\t4.5\tNEUTRAL\n2\td\te\t3\tENTAILMENT\n3\tf\tg\t1\tCONTRADICTION\n"
    found = read_entailment(write(tmp_path / "SICK_trial.txt", SICK + rows))
    assert found[0] == TransferSample(("a b", "c"), 1)
    assert [sample.label for sample in found] == [1, 2, 0]


@pytest.mark.parametrize(
    ("read", "text", "message"),
    [
        (read_binary_sentiment, "a\t1\nb 0\n", r"x:2: expected at least 2 tab-separated"),
        (read_binary_sentiment, "a\t1\nb\t2\n", r"x:2: expected a class of 0, 1, received '2'"),
        (read_binary_sentiment, "\t1\n", r"x:1: expected a sentence"),
        (read_fine_sentiment, "5 a\n", r"x:1: expected a class of 0, 1, 2, 3, 4, received '5'"),
        (read_fine_sentiment, "3\n", r"x:1: expected a sentence, received none"),
        (read_trec, "\nDATE:x a\n", r"x:2: expected a class of ABBR, .* received 'DATE'"),
        (read_trec, "NUM:dist\n", r"x:1: expected a sentence"),
        (read_mrpc, MRPC + "1\t7\t8\ta\n", r"x:2: expected 5"),
        (read_mrpc, MRPC + "yes\t7\t8\ta\tb\n", r"x:2: expected a class of 0, 1, received 'yes'"),
        (read_mrpc, "1\t7\t8\ta\tb\n", r"x:1: expected the columns"),
        (read_entailment, SICK + "1\ta\tb\t3\t\n", r"x:2: .* received ''"),
        (read_entailment, SICK, r"x: expected labelled sentences, found none"),
        (lambda path: read_sentences(path, label=0), "", r"x: expected labelled sentences"),
    ],
)
def test_errors_name_file_and_line(
    tmp_path: Path, read: Callable[[Path], object], text: str, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        read(write(tmp_path / "x", text))


@pytest.mark.parametrize(
    ("dataset", "counts", "classes"),
    [
        (readers.MR, {"train": 10662}, {0: 5331, 1: 5331}),
        (readers.SUBJ, {"train": 10000}, {0: 5000, 1: 5000}),
        (readers.SST2, {"train": 67349, "dev": 872, "test": 1821}, {0: 29780, 1: 37569}),
        (
            readers.SST5,
            {"train": 8544, "dev": 1101, "test": 2210},
            {0: 1092, 1: 2218, 2: 1624, 3: 2322, 4: 1288},
        ),
        (
            readers.TREC,
            {"train": 5452, "test": 500},
            {0: 86, 1: 1162, 2: 1250, 3: 1223, 4: 835, 5: 896},
        ),
        (readers.MRPC, {"train": 4076, "test": 1725}, {0: 1323, 1: 2753}),
        (
            readers.SICK_E,
            {"train": 4500, "dev": 500, "test": 4927},
            {0: 665, 1: 2536, 2: 1299},
        ),
    ],
    ids=lambda value: value.name if isinstance(value, TransferDataset) else "",
)
def test_real_files_have_the_published_counts(
    data_dir: Path, dataset: TransferDataset, counts: dict[str, int], classes: dict[int, int]
) -> None:
    found = dataset.read(DataFolder(data_dir)).parts()
    assert {part: len(samples) for part, samples in found.items()} == counts
    assert Counter(sample.label for sample in found["train"]) == classes
    pairs = {len(sample.sentences) for samples in found.values() for sample in samples}
    assert pairs == {2 if dataset in (readers.MRPC, readers.SICK_E) else 1}


def test_subjective_sentences_are_class_0_and_objective_ones_follow_class_1(data_dir: Path) -> None:
    # senteval/binary.py calls the objective file "pos".
    train = readers.SUBJ.read(DataFolder(data_dir)).train
    assert train[0].sentences[0].startswith("the movie begins in the past")
    assert (train[0].label, train[-1].label) == (1, 0)


def test_a_missing_file_is_named_with_where_to_get_it(tmp_path: Path) -> None:
    (tmp_path / "CR").mkdir()
    (tmp_path / "CR" / "custrev.pos").write_text("good\n")
    with pytest.raises(
        MissingDataError, match=r"CR/custrev\.neg.*Get it from https://www\.cs\.uic"
    ):
        readers.CR.read(DataFolder(tmp_path))
    (tmp_path / "CR" / "custrev.neg").write_text("bad\nworse\n")
    assert [sample.label for sample in readers.CR.read(DataFolder(tmp_path)).train] == [1, 0, 0]
