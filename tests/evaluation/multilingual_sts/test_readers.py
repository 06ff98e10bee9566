from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from use_st5.evaluation.multilingual_sts.readers import (
    read_cnsd,
    read_jsts,
    read_korsts,
    read_sts2017,
    read_stsb_multi_mt,
)
from use_st5.evaluation.sts import STSPair

Read = Callable[[Path], list[STSPair]]
JSTS = '{"sentence_pair_id": "0", "sentence1": "犬", "sentence2": "猫", "label": 0}\n'
KORSTS = "genre\tfilename\tyear\tid\tscore\tsentence1\tsentence2\n"


def write(folder: Path, text: str) -> Path:
    path = folder / "set.txt"
    path.write_bytes(text.encode())
    return path


def sts2017(folder: Path, inputs: str, gold: str, **options: int) -> list[STSPair]:
    (folder / "gs.txt").write_text(gold, encoding="utf-8")
    return read_sts2017(write(folder, inputs), folder / "gs.txt", **options)


def test_sts2017_pairs_line_by_line(tmp_path: Path) -> None:
    pairs = sts2017(tmp_path, 'a "b\tc \n d\u2028e\tf\n', "1.4\n5\n")
    assert pairs == [STSPair('a "b', "c", 1.4), STSPair("d\u2028e", "f", 5.0)]


def test_sts2017_may_be_scored_in_part(tmp_path: Path) -> None:
    assert sts2017(tmp_path, "a\tb\nc\td\n", "1\n", scored=1) == [STSPair("a", "b", 1.0)]


@pytest.mark.parametrize(
    ("inputs", "gold", "options", "message"),
    [
        ("a\tb\nc\td\n", "1\n", {}, r"gs\.txt:2: .* line 2 of set\.txt"),
        ("a\tb\n", "1\n2\n", {}, r"set\.txt:2: .* line 2 of gs\.txt"),
        ("a\tb\n", "1\n2\n", {"scored": 2}, r"set\.txt:2: .* line 2 of gs"),
        ("a\tb\nc\td\n", "1\n\n", {}, r"gs\.txt:2: expected a score .*, received ''"),
        ("a\tb\nc\td\n", "1\nnan\n", {}, r"gs\.txt:2: expected a score .*, received 'nan'"),
        ("a\tb\nc\n", "1\n2\n", {}, r"set\.txt:2: expected two sentences, received \['c'\]"),
        ("a\tb\tc\n", "1\n", {}, r"set\.txt:1: expected two sentences"),
        ("a\t \n", "1\n", {}, r"set\.txt:1: expected two sentences, received \['a', ''\]"),
    ],
)
def test_sts2017_errors(
    tmp_path: Path, inputs: str, gold: str, options: dict, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        sts2017(tmp_path, inputs, gold, **options)


def test_sts2017_without_gold(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"gold\.txt: expected a file"):
        read_sts2017(write(tmp_path, "a\tb\n"), tmp_path / "gold.txt")


def test_jsts(tmp_path: Path) -> None:
    path = write(tmp_path, JSTS + JSTS.replace('"0"', '"1"').replace(": 0}", ": 4.2}"))
    assert read_jsts(path) == [STSPair("犬", "猫", 0.0), STSPair("犬", "猫", 4.2)]


def test_korsts_has_no_quoting(tmp_path: Path) -> None:
    row = 'main-news\tMSRpar\t2012test\t0001\t5.000\t"가, 나\t다 "라"\n'
    assert read_korsts(write(tmp_path, KORSTS + row)) == [STSPair('"가, 나', '다 "라"', 5.0)]


def test_cnsd(tmp_path: Path) -> None:
    rows = "2012test-0024||一个|女孩||女孩。||2\n2012test-0024||甲||乙||5\n"
    assert read_cnsd(write(tmp_path, rows)) == [
        STSPair("一个|女孩", "女孩。", 2.0),
        STSPair("甲", "乙", 5.0),
    ]


def test_stsb_multi_mt_is_quoted(tmp_path: Path) -> None:
    rows = '"Er sagt: ""Ja"", oder?",Nein.,2.5\r\nEin Tab\tund\u2028mehr,"zwei\nZeilen",0\r\n'
    assert read_stsb_multi_mt(write(tmp_path, rows)) == [
        STSPair('Er sagt: "Ja", oder?', "Nein.", 2.5),
        STSPair("Ein Tab\tund\u2028mehr", "zwei\nZeilen", 0.0),
    ]


@pytest.mark.parametrize(
    ("read", "text", "message"),
    [
        (read_jsts, JSTS + JSTS, r"set\.txt:2: expected a new id, received '0' again"),
        (read_jsts, JSTS + "{\n", r"set\.txt:2: expected a JSON object with sentence_pair_id"),
        (read_jsts, "[" * 100_000, r"set\.txt:1: expected a JSON object"),
        (read_jsts, 2 * JSTS.replace('"0"', "[0]"), r"set\.txt:2: expected a new id, .*'\[0\]'"),
        (read_jsts, "[]\n", r"set\.txt:1: expected a JSON object"),
        (read_jsts, JSTS.replace("label", "score"), r"set\.txt:1: expected a JSON object .*label"),
        (
            read_jsts,
            JSTS.replace('"sentence1": "', '"sentence1": 3, "x": "', 1),
            "a JSON object with",
        ),
        (read_jsts, JSTS.replace(": 0}", ": null}"), r"set\.txt:1: expected a score .*, .*'None'"),
        (read_jsts, JSTS.replace("犬", ""), r"set\.txt:1: expected two sentences"),
        (read_jsts, "\n", r"set\.txt: expected pairs of sentences, received none"),
        (read_korsts, KORSTS, r"set\.txt: expected pairs of sentences, received none"),
        (read_korsts, KORSTS.replace("score", "label"), r"set\.txt:1: expected the columns score"),
        (read_korsts, KORSTS + "a\tb\tc\td\t1\te\n", r"set\.txt:2: expected 7"),
        (read_korsts, KORSTS + "a\tb\tc\td\tx\te\tf\n", r"set\.txt:2: expected a score"),
        (read_cnsd, "a||b||c||1\na||b||1\n", r"set\.txt:2: expected 4 fields .* received 3"),
        (read_cnsd, "a||b||c||d||1\n", r"set\.txt:1: expected 4 fields .* received 5"),
        (read_cnsd, "a||b||c||\n", r"set\.txt:1: expected a score .*, received ''"),
        (read_cnsd, "", r"set\.txt: expected pairs of sentences, received none"),
        (read_stsb_multi_mt, "", r"set\.txt:1: expected 3 comma-separated fields, received \[\]"),
        (read_stsb_multi_mt, "a,b,1\na,b,c,1\n", r"set\.txt:2: expected 3 comma-separated fields"),
        (read_stsb_multi_mt, "a,b,1\n\na,b,2\n", r"set\.txt:2: expected 3 comma-separated fields"),
        (read_stsb_multi_mt, "a,b,high\n", r"set\.txt:1: expected a score .*, received 'high'"),
        (read_stsb_multi_mt, 'a,"b"c,1\n', r"set\.txt:1: expected quoted fields \(.*expected"),
        (read_stsb_multi_mt, 'a,"b,1\n', r"set\.txt:1: expected quoted fields"),
    ],
)
def test_errors_name_the_line(tmp_path: Path, read: Read, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read(write(tmp_path, text))


@pytest.mark.parametrize("read", [read_jsts, read_korsts, read_cnsd, read_stsb_multi_mt])
def test_a_file_is_missing(tmp_path: Path, read: Read) -> None:
    with pytest.raises(FileNotFoundError, match=r"none\.txt: expected a file"):
        read(tmp_path / "none.txt")
