from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from use_st5.data.data_folder import DataFolder
from use_st5.evaluation.preparation import semeval
from use_st5.evaluation.preparation.downloads import Downloads
from use_st5.evaluation.preparation.preparation import PREPARATIONS, prepare
from use_st5.evaluation.preparation.semeval import read_semeval
from use_st5.evaluation.sts import readers
from use_st5.evaluation.sts.readers import read_semeval_sts

SUBSETS_16 = ("answer-answer", "headlines", "plagiarism", "postediting", "question-question")


def year_16(folder: Path, *, without: str = "") -> None:
    """The archive of 2016, whose files are called otherwise than those of the other years."""
    with zipfile.ZipFile(folder / "STS2016-en-test.zip", "w") as archive:
        root = "sts2016-english-with-gs-v1.0"
        archive.writestr(f"{root}/LICENSE.txt", "who may use it")
        archive.writestr(f"{root}/correlation.pl", "a script")
        for number, subset in enumerate(SUBSETS_16):
            if subset != without:
                archive.writestr(f"{root}/STS2016.input.{subset}.txt", f"a {number}\tb\tsource\n")
                archive.writestr(f"{root}/STS2016.gs.{subset}.txt", f"{number}\n")


def test_files_of_2016_get_the_names_of_the_other_years(tmp_path: Path) -> None:
    year_16(tmp_path)
    ((place, files),) = read_semeval(Downloads(tmp_path)).items()
    assert place == "STS16-en-test"
    kinds = [f"STS.{kind}.{subset}.txt" for subset in SUBSETS_16 for kind in ("input", "gs")]
    assert sorted(files) == sorted([*kinds, "LICENSE.txt"])
    assert files["STS.gs.plagiarism.txt"] == b"2\n"


def test_a_year_that_is_not_whole_is_none(tmp_path: Path) -> None:
    year_16(tmp_path, without="plagiarism")
    assert read_semeval(Downloads(tmp_path)) == {}


def test_prepared_sets_are_where_the_tasks_look(tmp_path: Path) -> None:
    year_16(tmp_path)
    written, left = prepare(PREPARATIONS["sts"], tmp_path / "data", source=tmp_path)
    assert (written, left) == ([tmp_path / "data" / "STS16-en-test"], [])
    found = DataFolder(tmp_path / "data").find(readers.STS16)
    sts16 = read_semeval_sts(found)
    assert sts16.subsets.keys() == set(SUBSETS_16)
    assert sts16.subsets["plagiarism"][0].score == 2


def test_real_sets_come_through_as_they_are(data_dir: Path, tmp_path: Path) -> None:
    raw = data_dir / "sts_raw"
    if not raw.is_dir():
        pytest.skip("needs real data: sts_raw")
    sets = read_semeval(Downloads(raw))
    assert {"STS12-en-test", "STS13-en-test", "STS15-en-test", "stsbenchmark"} <= {*sets}
    for place, files in sets.items():
        assert {*semeval.SEMEVAL[place]} <= {*files}
        assert any("readme" in name for name in files)
        for name, content in files.items():
            assert content == (raw / place / name).read_bytes()
    inputs = [name for name in sets["STS15-en-test"] if name.startswith("STS.input.")]
    assert len([name for name in inputs if name.endswith(".txt")]) == 5
