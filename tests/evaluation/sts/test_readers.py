from __future__ import annotations

from pathlib import Path

import pytest

from use_st5.data.data_folder import DataFolder, MissingDataError
from use_st5.evaluation.sts import STSPair, read_semeval_sts, read_sick, read_stsb, sts_suite
from use_st5.evaluation.sts.readers import STS12, STS14, STS16


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


def test_suite_finds_what_is_there_and_names_the_rest(tmp_path: Path) -> None:
    write(tmp_path / "sts" / "STS14-en-test" / "STS.input.x.txt", "a\tb\n")
    write(tmp_path / "sts" / "STS14-en-test" / "STS.gs.x.txt", "1\n")
    write(tmp_path / "SICK" / "SICK_test_annotated.txt", SICK + "1\ta\tb\t3\tNEUTRAL\r\n")
    sets, missing = sts_suite(tmp_path)
    assert {name: (data.name, len(data)) for name, data in sets.items()} == {
        "STS14": ("STS14", 1),
        "SICK-R test": ("SICK-R test", 1),
    }
    assert list(missing) == ["STS12", "STS13", "STS15", "STS16", "STS-B dev", "STS-B test"]
    assert missing["STS-B dev"] == "stsbenchmark/sts-dev.csv or STSBenchmark/sts-dev.csv"
    (tmp_path / "empty").mkdir()
    with pytest.raises(
        FileNotFoundError, match=r"at least one of STS12-en-test/STS\*\.txt or STS12/"
    ):
        sts_suite(tmp_path / "empty")
    with pytest.raises(FileNotFoundError, match="expected a folder with data sets"):
        sts_suite(tmp_path / "nowhere")


ARCHIVED = {  # What SemEval's archives call their folders.
    12: "test-gold",
    13: "test-gs",
    14: "sts-en-test-gs-2014",
    15: "test_evaluation_task2a",
    16: "sts2016-english-with-gs-v1.0",
}


@pytest.mark.parametrize(
    "layout",
    [
        "{archived}",
        "STS{year}/{archived}",
        "STS{year}-en-test/{archived}",
        "downloads/STS20{year}-en-test/{archived}",
        "STS/STS{year}-en-test",  # as SentEval's script leaves them
        "STS{year}",
    ],
)
def test_years_in_the_layouts_that_archives_and_scripts_leave(tmp_path: Path, layout: str) -> None:
    for year, archived in ARCHIVED.items():
        folder = tmp_path / layout.format(year=year, archived=archived)
        prefix = "STS2016" if year == 16 and folder.name == archived else "STS"
        write(folder / f"{prefix}.input.news.txt", f"a {year}\tb\n")
        write(folder / f"{prefix}.gs.news.txt", "1\n")
        write(folder / "correlation.pl", "no data")
    (tmp_path / "STS13-en-test").mkdir(exist_ok=True)  # found by name, and nothing in it
    sets, _ = sts_suite(tmp_path)
    assert {name: data.pairs[0].first for name, data in sets.items()} == {
        f"STS{year}": f"a {year}" for year in ARCHIVED
    }
    hashed = DataFolder(tmp_path).hashes([STS16])
    assert [Path(file).name.split(".", 1)[1] for file in hashed] == [
        "gs.news.txt",
        "input.news.txt",
    ]


def test_a_folder_of_the_right_name_alone_is_missing(tmp_path: Path) -> None:
    write(tmp_path / "STS14-en-test" / "elsewhere" / "STS.input.x.txt", "a\tb\n")
    write(tmp_path / "STS12" / "readme.txt", "")
    folder = DataFolder(tmp_path)
    assert not folder.has(STS12)
    with pytest.raises(MissingDataError, match=r"sts-en-test-gs-2014/STS\*\.txt in .* found none"):
        folder.find(STS14)


# As published.
YEAR_2012 = {"MSRpar": 750, "MSRvid": 750, "SMTeuroparl": 459, "surprise.OnWN": 750}
COUNTS = {
    "STS12": YEAR_2012 | {"surprise.SMTnews": 399},
    "STS13": {"FNWN": 189, "OnWN": 561, "headlines": 750},
    "STS15": {
        "answers-forums": 375,
        "answers-students": 750,
        "belief": 375,
        "headlines": 750,
        "images": 750,
    },
}


def test_published_counts(data_dir: Path) -> None:
    sets, missing = sts_suite(data_dir)
    assert list(missing) == ["STS14", "STS16"]
    for name, counts in COUNTS.items():
        assert {subset: len(each) for subset, each in sets[name].subsets.items()} == counts
    assert {name: len(data) for name, data in sets.items()} == {
        "STS12": 3108,
        "STS13": 1500,
        "STS15": 3000,
        "STS-B dev": 1500,
        "STS-B test": 1379,
        "SICK-R test": 4927,
    }
    stsb = data_dir / "sts_raw" / "stsbenchmark"
    assert len(read_stsb(stsb / "sts-train.csv")) == 5749
    assert len(read_sick(data_dir / "sick2014" / "SICK_train.txt")) == 4500
    assert len(read_sick(data_dir / "sick2014" / "SICK_trial.txt")) == 500
    for data in sets.values():
        for pair in (pair for subset in data.subsets.values() for pair in subset):
            assert 0 <= pair.score <= 5
            assert pair.first
            assert pair.second
