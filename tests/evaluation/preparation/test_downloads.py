from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from use_st5.evaluation.preparation.downloads import Downloads


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The files one and two, side by side in: a folder, a zip, a compressed tar."""
    (tmp_path / "plain").mkdir()
    for name in ("one", "two"):
        (tmp_path / "plain" / name).write_text(f"plain {name}", encoding="utf-8")
    with zipfile.ZipFile(tmp_path / "packed.zip", "w") as archive:
        archive.mkdir("inside")
        archive.writestr("inside/one", "zip one")
        archive.writestr("inside/three", "zip three")
        archive.writestr("top", "zip top")
    with tarfile.open(tmp_path / "z.tar.gz", "w:gz") as archive:
        for name in ("one", "four"):
            member = tarfile.TarInfo(f"./deep/er/{name}")
            member.size = 5
            archive.addfile(member, io.BytesIO(b"tar " + name[:1].encode()))
    return tmp_path


def test_names_are_found_together_in_folders_and_archives(folder: Path) -> None:
    downloads = Downloads(folder)
    for names, place, content in (
        (("one", "two"), "plain", b"plain one"),
        (("one", "three"), "packed.zip/inside", b"zip one"),
        (("one", "four"), "z.tar.gz/deep/er", b"tar o"),
    ):
        assert downloads.folder_of(names) == place
        assert downloads.read(place, "one") == content
    assert downloads.folder_of(["top"]) == "packed.zip"
    assert downloads.folder_of(["two", "three"]) is None, "they are in different folders"
    assert downloads.names("packed.zip/inside") == ["one", "three"]


def test_members_cannot_leave_the_memory(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "evil.zip", "w") as archive:
        archive.writestr("../../outside", "evil")
    downloads = Downloads(tmp_path)
    place = downloads.folder_of(["outside"])
    assert downloads.read(place, "outside") == b"evil"
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["evil.zip"]
    assert not (tmp_path.parent.parent / "outside").exists()


def test_errors_name_what_is_damaged(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere: expected a folder of downloads"):
        Downloads(tmp_path / "nowhere")
    for name in ("broken.zip", "broken.tar.gz"):
        path = tmp_path / name
        path.write_bytes(b"no archive at all")
        with pytest.raises(ValueError, match=rf"{name}: expected an archive that can be read"):
            Downloads(tmp_path)
        path.unlink()


def test_an_archive_that_was_cut_short_is_found_out(folder: Path) -> None:
    path = folder / "z.tar.gz"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(ValueError, match=r"z\.tar\.gz: expected an archive .* Download it again"):
        downloads = Downloads(folder)
        downloads.read(downloads.folder_of(["four"]), "four")


def test_a_damaged_member_is_found_when_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("one", "content")
    path.write_bytes(path.read_bytes().replace(b"content", b"CONTENT"))
    downloads = Downloads(tmp_path)
    with pytest.raises(ValueError, match=r"a\.zip: expected an archive that can be read"):
        downloads.read("a.zip", "one")
