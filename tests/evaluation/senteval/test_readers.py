from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from use_st5.evaluation.senteval import TransferSample
from use_st5.evaluation.senteval.readers import (
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
