from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from experiments.nli_reader import NLI_LABELS, NLIReader

# The official column orders of the two releases.
SNLI_TXT = (
    "gold_label\tsentence1_binary_parse\tsentence2_binary_parse\tsentence1_parse\tsentence2_parse\t"
    "sentence1\tsentence2\tcaptionID\tpairID\tlabel1\tlabel2\tlabel3\tlabel4\tlabel5"
)
MNLI_GLUE = "index\tpairID\tgenre\tsentence1\tsentence2\tlabel1\tgold_label"


def write(path: Path, *lines: str | bytes) -> Path:
    raw = [line if isinstance(line, bytes) else line.encode() for line in lines]
    path.write_bytes(b"\n".join(raw) + b"\n")
    return path


def row(premise: str, hypothesis: str, label: Any) -> str:
    return json.dumps({"premise": premise, "hypothesis": hypothesis, "label": label})


def snli(premise: str, hypothesis: str, label: str) -> str:
    return json.dumps({"sentence1": premise, "sentence2": hypothesis, "gold_label": label})


def test_snli_jsonl_skips_and_counts_rows_without_a_gold_label(tmp_path: Path) -> None:
    path = write(
        tmp_path / "snli.jsonl",
        snli("A man sleeps.", "He rests.", "entailment"),
        snli("A man sleeps.", "He runs.", "-"),
        "",
        snli("A man sleeps.", "He runs.", "contradiction"),
    )
    reader = NLIReader(path)
    assert list(reader) == [
        {"premise": "A man sleeps.", "hypothesis": "He rests.", "label": 0},
        {"premise": "A man sleeps.", "hypothesis": "He runs.", "label": 2},
    ]
    assert reader.report.rows == 2
    assert reader.report.skipped == {"no gold label": 1, "blank": 1}
    assert reader.report.malformed_rows == 0


def test_snli_txt_keeps_quotes_and_trailing_empty_fields(tmp_path: Path) -> None:
    path = write(
        tmp_path / "snli.txt",
        SNLI_TXT,
        'neutral\t(a)\t(b)\t(R)\t(R)\tHe says "go\tShe said "so"\t1.jpg\t1n\tneutral\t\t\t\t',
        "-\t(a)\t(b)\t(R)\t(R)\tA\tB\t1.jpg\t1n\tneutral\tentailment\t\t\t",
        'entailment\t(a)\t(b)\t(R)\t(R)\t"Up!"\tD\t2.jpg\t2e\tentailment',
    )
    assert list(NLIReader(path)) == [
        {"premise": 'He says "go', "hypothesis": 'She said "so"', "label": 1},
        {"premise": '"Up!"', "hypothesis": "D", "label": 0},
    ]


def test_glue_tsv_takes_the_gold_label_not_label1(tmp_path: Path) -> None:
    path = write(
        tmp_path / "dev_matched.tsv", MNLI_GLUE, "0\t1n\tfiction\tP\tH\tneutral\tcontradiction"
    )
    assert list(NLIReader(path)) == [{"premise": "P", "hypothesis": "H", "label": 2}]


def test_bom_crlf_capital_names_and_gzip(tmp_path: Path) -> None:
    path = tmp_path / "conjnli.tsv.gz"
    text = "\ufeffPremise\tHypothesis\tLabel\r\nPremi\u00e8re\tH\tneutral\r\n"
    path.write_bytes(gzip.compress(text.encode()))
    assert list(NLIReader(path)) == [{"premise": "Premi\u00e8re", "hypothesis": "H", "label": 1}]


@pytest.mark.parametrize(
    ("value", "label"),
    [("e", 0), ("n", 1), ("c", 2), (0, 0), (1, 1), (2, 2), ("Entailment", 0), (" neutral ", 1)],
)
def test_labels(tmp_path: Path, value: Any, label: int) -> None:
    path = write(tmp_path / "a.jsonl", row("p", "h", value))
    assert [example["label"] for example in NLIReader(path)] == [label]


@pytest.mark.parametrize("value", [3, True, None, "1", "not_entailment", ["e"], 0.0])
def test_other_labels_are_malformed(tmp_path: Path, value: Any) -> None:
    path = write(tmp_path / "a.jsonl", row("p", "h", "e"), row("p", "h", value))
    reader = NLIReader(path, max_malformed=1)
    assert len(list(reader)) == 1
    assert reader.report.offences == [f"{path}:2: label {value!r}"]


def test_hidden_test_labels_are_no_error_until_nothing_is_left(tmp_path: Path) -> None:
    path = write(tmp_path / "test.jsonl", row("p", "h", -1))
    with pytest.raises(ValueError, match=r"no usable row.*\n.*\n.*no gold label: 1"):
        list(NLIReader(path))


def test_every_kind_of_malformed_line_is_named_with_its_place(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.jsonl",
        row("p", "h", "e"),
        "{not json",
        '["a", "list"]',
        b'{"premise": "\xff", "hypothesis": "h", "label": "e"}',
        '{"premise": "p", "label": "e"}',
        row("   ", "h", "e"),
        '{"premise": 3, "hypothesis": "h", "label": "e"}',
    )
    reader = NLIReader(path, max_malformed=0.9)
    assert len(list(reader)) == 1
    assert reader.report.offences == [
        f"{path}:2: invalid JSON",
        f"{path}:3: JSON list, not an object",
        f"{path}:4: invalid utf-8",
        f"{path}:5: no text in 'hypothesis'",
        f"{path}:6: no text in 'premise'",
        f"{path}:7: 'premise' is of type int, expected text",
    ]
    assert reader.report.malformed_share == pytest.approx(6 / 7)
    assert str(reader.report).startswith("1 rows read, 1 examples, 0 skipped, 6 malformed\n")


def test_a_tab_inside_a_sentence_does_not_shift_columns(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "sentence1\tsentence2\tgold_label", "a\tb\tc\tneutral", "a\tb")
    reader = NLIReader(path, max_malformed=1)
    with pytest.raises(ValueError, match="no usable row"):
        list(reader)
    assert reader.report.offences == [
        f"{path}:2: 4 fields, expected 3",
        f"{path}:3: 2 fields, expected 3",
    ]


def test_strict_stops_at_the_first_malformed_line(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", row("p", "h", "e"), "{", row("p", "h", "n"))
    examples = iter(NLIReader(path, strict=True))
    next(examples)
    with pytest.raises(ValueError, match=r"a\.jsonl:2: invalid JSON\. Expected rows of premise"):
        next(examples)


def test_more_malformed_rows_than_allowed_are_an_error_and_just_as_many_are_not(
    tmp_path: Path,
) -> None:
    path = write(tmp_path / "a.jsonl", *[row("p", "h", "e")] * 99, "{")
    assert len(list(NLIReader(path, max_malformed=0.01))) == 99
    with pytest.raises(ValueError, match=r"found 1\.00%.*\n(.*\n)*.*:100:"):
        list(NLIReader(path, max_malformed=0.009))


def test_a_file_of_another_kind_is_refused_before_its_end(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", *["no json"] * 1000)
    reader = NLIReader(path)
    with pytest.raises(ValueError, match="found 100.00%"):
        list(reader)
    assert reader.report.malformed_rows == 100
    assert len(reader.report.offences) == 10


def test_a_bad_stretch_in_a_good_file_is_left_out(tmp_path: Path) -> None:
    lines = [row("p", "h", "e"), *["no json"] * 150, *[row("p", "h", "n")] * 200]
    reader = NLIReader(write(tmp_path / "a.jsonl", *lines), max_malformed=0.5)
    assert len(list(reader)) == 201
    assert reader.report.malformed == {"invalid JSON": 150}


def test_missing_column_lists_both_sides(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "Premise\tHypothesis", "p\th")
    with pytest.raises(ValueError, match=r"'gold_label' or 'label', received \['Premise', 'Hyp"):
        list(NLIReader(path))


def test_each_pass_starts_anew_and_several_files_are_one_stream(tmp_path: Path) -> None:
    paths = [write(tmp_path / f"{x}.jsonl", row(x, "h", x)) for x in "enc"]
    reader = NLIReader(paths)
    assert [NLI_LABELS[e["label"]][0] for e in reader] == ["e", "n", "c"]
    assert list(reader) == list(reader)
    assert reader.report.rows == 3


def test_empty_missing_and_wrong_files(tmp_path: Path) -> None:
    empty = write(tmp_path / "empty.jsonl", "")
    with pytest.raises(ValueError, match=r"empty\.jsonl: the file has no rows\. Expected rows of"):
        list(NLIReader(empty))
    header_only = write(tmp_path / "header.tsv", "premise\thypothesis\tlabel")
    with pytest.raises(ValueError, match="no rows"):
        list(NLIReader(header_only))
    with pytest.raises(FileNotFoundError, match=r"nowhere\.jsonl: expected a file"):
        NLIReader(tmp_path / "nowhere.jsonl")
    with pytest.raises(ValueError, match="received a folder"):
        NLIReader(tmp_path)
    with pytest.raises(ValueError, match="at least one file"):
        NLIReader([])
    with pytest.raises(ValueError, match=r"expected a name that ends in one of \.jsonl"):
        list(NLIReader(write(tmp_path / "a.xml", "x")))
    with pytest.raises(ValueError, match=r"expected a share in \[0, 1\], received 5"):
        NLIReader(empty, max_malformed=5)


# Rows by file, as published (the README of each corpus); skipped rows come on top.
REAL = {
    "cad_snli/NLI/all_combined/train.tsv": (8330, 0),
    "conjnli/adversarial_train_15k.tsv": (15000, 0),
    "conjnli/conj_dev.tsv": (623, 0),
    "mnli_dev/val.jsonl": (9815, 0),
    "mnli_dev/train_mnli3000.jsonl": (3000, 0),
    "semi_automatic_nli/data/sim_wiki/train.jsonl": (6174, 0),
    "ling_in_loop/NLI_data/3_Ling_in_loop_protocol/train_round5_LitL.jsonl": (2999, 0),
    "taxinli/taxinli10k_MNLIDev.tsv": (7727, 0),
}


@pytest.mark.parametrize("name", REAL)
def test_real_files(data_dir: Path, name: str) -> None:
    reader = NLIReader(data_dir / "nli" / name, strict=True)
    labels = {example["label"] for example in reader}
    assert labels == {0, 1, 2}
    assert (reader.report.rows, reader.report.skipped.total()) == REAL[name]
