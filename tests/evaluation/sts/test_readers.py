from __future__ import annotations

from pathlib import Path

import pytest

from use_st5.evaluation.sts import STSPair, read_semeval_sts, read_sick, read_stsb


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


SICK = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\r\n"


def test_semeval_skips_lines_without_gold(tmp_path: Path) -> None:
    write(tmp_path / "STS.input.news.txt", 'a "b\tc\nd\u2028e\tf\x85g\nh\ti\n')
    write(tmp_path / "STS.gs.news.txt", "4.5\n\n0\n")
    write(tmp_path / "STS.input.surprise.OnWN.txt", "j\tk \n")
    write(tmp_path / "STS.gs.surprise.OnWN.txt", "5.000")
    write(tmp_path / "STS.gs.SMT.txt", "1\n")
    write(tmp_path / "STS.gs.ALL.txt", "1\n2\n")
    data = read_semeval_sts(tmp_path)
    assert data.name == tmp_path.name
    assert data.subsets == {
        "news": [STSPair('a "b', "c", 4.5), STSPair("h", "i", 0.0)],
        "surprise.OnWN": [STSPair("j", "k", 5.0)],
    }
    assert len(data) == 3


def test_semeval_lines_end_at_line_feeds_alone(tmp_path: Path) -> None:
    write(tmp_path / "STS.input.x.txt", "d\u2028e\tf\x85g\nh\ti\n")
    write(tmp_path / "STS.gs.x.txt", "1\n2\n")
    first, _ = read_semeval_sts(tmp_path).subsets["x"]
    assert first == STSPair("d\u2028e", "f\x85g", 1.0)


def test_semeval_errors(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"expected files STS\.input"):
        read_semeval_sts(tmp_path)
    write(tmp_path / "STS.input.x.txt", "a\tb\nc\td\n")
    with pytest.raises(FileNotFoundError, match="expected the gold scores of STS.input.x.txt"):
        read_semeval_sts(tmp_path)
    gold = write(tmp_path / "STS.gs.x.txt", "1\n2\n3\n")
    with pytest.raises(ValueError, match=r"input\.x\.txt:3: .* line 3 of STS\.gs\.x"):
        read_semeval_sts(tmp_path)
    write(gold, "1\nhigh\n")
    with pytest.raises(
        ValueError, match=r"STS\.gs\.x\.txt:2: expected a score .*, received 'high'"
    ):
        read_semeval_sts(tmp_path)
    write(gold, "1\nnan\n")
    with pytest.raises(ValueError, match=r"gs\.x\.txt:2: expected a score .*, received 'nan'"):
        read_semeval_sts(tmp_path)
    gold.write_bytes(b"1\n\xff\n")
    with pytest.raises(
        ValueError, match=r"STS\.gs\.x\.txt:2: expected UTF-8 text, received the byte 0xff"
    ):
        read_semeval_sts(tmp_path)
    write(gold, "1\n2\n")
    write(tmp_path / "STS.input.x.txt", "a\tb\nc d\n")
    with pytest.raises(ValueError, match=r"x\.txt:2: expected at least 2 tab-separated fields"):
        read_semeval_sts(tmp_path)


def test_stsb_has_no_quoting_and_may_have_more_columns(tmp_path: Path) -> None:
    path = write(
        tmp_path / "sts-dev.csv",
        'main-news\tMSRpar\t2012test\t0001\t5.000\t"A, b\tC "d"\n'
        "main-captions\tMSRvid\t2012test\t0002\t0.5\te\tf\tlicence\tmore\n"
        "main-news\tMSRpar\t2012test\t0003\t1\tg\th\n",
    )
    data = read_stsb(path)
    assert data.name == "sts-dev"
    assert data.subsets == {
        "main-news": [STSPair('"A, b', 'C "d"', 5.0), STSPair("g", "h", 1.0)],
        "main-captions": [STSPair("e", "f", 0.5)],
    }
    shifted = path.read_text().replace("MSRpar", "\tMSRpar", 1)
    with pytest.raises(ValueError, match=r"s\.csv:1: expected 7 .* or 9 .* received 8: 'main-news"):
        read_stsb(write(tmp_path / "s.csv", shifted))
    with pytest.raises(ValueError, match=r"b\.csv:1: expected at least 7 .* received 1: 'a,b,c'"):
        read_stsb(write(tmp_path / "b.csv", "a,b,c\n"))
    with pytest.raises(ValueError, match="expected pairs of sentences, found none"):
        read_stsb(write(tmp_path / "c.csv", "\n"))
    with pytest.raises(FileNotFoundError, match="expected a file"):
        read_stsb(tmp_path / "none.csv")


def test_sick_by_its_header(tmp_path: Path) -> None:
    path = write(tmp_path / "SICK_trial.txt", SICK + "4\tA b\tC d\t3.6\tCONTRADICTION\r\n\r\n")
    assert read_sick(path).subsets == {"all": [STSPair("A b", "C d", 3.6)]}
    bad = write(tmp_path / "b.txt", "pair_ID\tsentence_A\n1\ta\n")
    with pytest.raises(ValueError, match="sentence_B, relatedness_score missing in the header"):
        read_sick(bad)
    twice = write(tmp_path / "c.txt", SICK + "4\ta\tb\t3\t\n5\tc\td\t1\t\n4\te\tf\t2\t\n")
    with pytest.raises(ValueError, match=r"c\.txt:4: expected a new id, received '4' again"):
        read_sick(twice)


def test_a_blank_sentence_is_no_sentence(tmp_path: Path) -> None:
    stsb = write(tmp_path / "stsb.csv", "g\tf\t2012\t1\t5.000\ta\t \n")
    sick = write(tmp_path / "sick.txt", SICK + "1\t\tb\t3\t\n")
    write(tmp_path / "STS.input.x.txt", "a\tb\n\tb\n")
    write(tmp_path / "STS.gs.x.txt", "1\n2\n")
    for read, path, place in (
        (read_stsb, stsb, r"stsb\.csv:1"),
        (read_sick, sick, r"sick\.txt:2"),
        (read_semeval_sts, tmp_path, r"input\.x\.txt:2"),
    ):
        with pytest.raises(ValueError, match=place + ": expected two sentences"):
            read(path)
