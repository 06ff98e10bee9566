from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from use_st5.data.data_folder import DataFolder, DataSource, MissingDataError


def write(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def source(*places: str) -> DataSource:
    return DataSource("Toy", places, "the toy shop, https://toys.example")


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize("above", ["", "a", "a/b"])
def test_up_to_two_folders_deeper(tmp_path: Path, above: str) -> None:
    file = write(tmp_path / above / "toy" / "test.tsv")
    folder = DataFolder(tmp_path)
    assert folder.find(source("toy/test.tsv")) == file
    assert folder.find(source("toy")) == file.parent
    assert folder.has(source("toy"))


def test_three_folders_deeper_is_missing(tmp_path: Path) -> None:
    write(tmp_path / "a/b/c/toy/test.tsv")
    folder = DataFolder(tmp_path)
    assert not folder.has(source("toy/test.tsv"))
    with pytest.raises(MissingDataError, match="Toy: expected toy/test.tsv or TOY.tsv in") as info:
        folder.find(source("toy/test.tsv", "TOY.tsv"))
    assert "Get it from the toy shop, https://toys.example." in str(info.value)
    assert isinstance(info.value, FileNotFoundError)
    with pytest.raises(MissingDataError):
        folder.hashes([source("toy")])


def test_shallowest_copy_then_the_first_by_name(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    for above in ("b/b", "a/z", "c", "b"):  # each is preferred to those before
        file = write(tmp_path / above / "toy.tsv", above)
        if above != "b/b":
            assert folder.find(source("toy.tsv")) == file
    # Only files that are read are hashed.
    assert folder.hashes([source("toy.tsv")]) == {"b/toy.tsv": sha256("b")}


def test_first_place_before_the_shallowest(tmp_path: Path) -> None:
    write(tmp_path / "old.tsv")
    file = write(tmp_path / "a" / "new.tsv")
    assert DataFolder(tmp_path).find(source("new.tsv", "old.tsv")) == file


def test_wildcards_stand_for_all_files_of_one_copy(tmp_path: Path) -> None:
    for name in ("toy.de", "toy.fr", "other.de"):
        write(tmp_path / "a" / "toys" / name, name)
        write(tmp_path / "b" / "toys" / name, "copy")
    folder = DataFolder(tmp_path)
    expected = {f"a/toys/toy.{end}": sha256(f"toy.{end}") for end in ("de", "fr")}
    for place in ("toys/toy.*", "toys/toy.??", "toys/toy.[df]?"):
        assert folder.find(source(place)) == tmp_path / "a" / "toys"
        assert folder.hashes([source(place)]) == expected
    assert not folder.has(source("toys/doll.*"))


def test_a_place_without_wildcards_beside_one_with(tmp_path: Path) -> None:
    write(tmp_path / "toy.tsv", "one")
    either = source("toy.tsv", "toys/*.tsv")
    assert DataFolder(tmp_path).hashes([either]) == {"toy.tsv": sha256("one")}


def test_hashes_of_a_folder_are_of_all_its_files(tmp_path: Path) -> None:
    write(tmp_path / "toys" / "b" / "two.tsv", "two")
    write(tmp_path / "toys" / "one.tsv", "one")
    sources = [source("toys"), source("one.tsv")]
    assert DataFolder(tmp_path).hashes(sources) == {
        "toys/b/two.tsv": sha256("two"),
        "toys/one.tsv": sha256("one"),
    }


def test_no_folder(tmp_path: Path) -> None:
    for path in (tmp_path / "none", write(tmp_path / "file")):
        with pytest.raises(FileNotFoundError, match="expected a folder with data sets"):
            DataFolder(path)
