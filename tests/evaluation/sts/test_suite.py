from __future__ import annotations

from pathlib import Path

import pytest

from use_st5.evaluation.data_folder import DataFolder, MissingDataError
from use_st5.evaluation.sts import read_sick, read_stsb, sources, sts_suite


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


SICK = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\r\n"


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
    hashed = DataFolder(tmp_path).hashes([sources.STS16])
    assert [Path(file).name.split(".", 1)[1] for file in hashed] == [
        "gs.news.txt",
        "input.news.txt",
    ]


def test_a_folder_of_the_right_name_alone_is_missing(tmp_path: Path) -> None:
    write(tmp_path / "STS14-en-test" / "elsewhere" / "STS.input.x.txt", "a\tb\n")
    write(tmp_path / "STS12" / "readme.txt", "")
    folder = DataFolder(tmp_path)
    assert not folder.has(sources.STS12)
    with pytest.raises(MissingDataError, match=r"sts-en-test-gs-2014/STS\*\.txt in .* found none"):
        folder.find(sources.STS14)


# As published.
STS12 = {"MSRpar": 750, "MSRvid": 750, "SMTeuroparl": 459, "surprise.OnWN": 750}
COUNTS = {
    "STS12": STS12 | {"surprise.SMTnews": 399},
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
