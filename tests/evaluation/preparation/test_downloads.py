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


def test_only_files_come_out_of_a_tar(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "links.tar", "w") as archive:
        for name, kind in (("soft", tarfile.SYMTYPE), ("hard", tarfile.LNKTYPE)):
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, "/etc/passwd"
            archive.addfile(member)
        archive.addfile(tarfile.TarInfo("pipe"))
    downloads = Downloads(tmp_path)
    assert [downloads.folder_of([name]) for name in ("soft", "hard")] == [None, None]


@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_a_member_that_promises_too_much_is_refused(tmp_path: Path, kind: str) -> None:
    """Before a byte of it is unpacked: a few kilobytes may stand for gigabytes."""
    promised = 200_000_000
    path = tmp_path / f"bomb.{kind}"
    if kind == "zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("one", "x")
        little = (1).to_bytes(4, "little")
        head, _, directory = path.read_bytes().partition(b"PK\x01\x02")
        sizes = directory.replace(2 * little, little + promised.to_bytes(4, "little"), 1)
        path.write_bytes(head + b"PK\x01\x02" + sizes)
    else:
        member = tarfile.TarInfo("one")
        member.size = promised
        path.write_bytes(member.tobuf())
        with path.open("ab") as file:  # the rest is a hole
            file.truncate(promised + 10240)
    downloads = Downloads(tmp_path)
    with pytest.raises(ValueError, match=r"bomb\.\w+: .*one has 200,000,000 bytes, at most 100,"):
        downloads.read(downloads.folder_of(["one"]), "one")


@pytest.mark.parametrize("name", ["a.zip", "a.tar.gz", "a.tar.bz2", "a.tar.xz"])
def test_any_damage_is_one_error(tmp_path: Path, name: str) -> None:
    """Each byte of a small archive flipped, in turn: it is read as it was, or named."""
    mode = name.removeprefix("a.tar.")
    content = b"content of the member"
    whole = tmp_path / "whole"
    whole.mkdir()
    if name == "a.zip":
        with zipfile.ZipFile(whole / name, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("one", content)
    else:
        with tarfile.open(whole / name, f"w:{mode}") as archive:
            member = tarfile.TarInfo("one")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    good = (whole / name).read_bytes()
    folder = tmp_path / "damaged"
    folder.mkdir()
    for place in range(len(good)):
        (folder / name).write_bytes(good[:place] + bytes([good[place] ^ 0xFF]) + good[place + 1 :])
        try:
            downloads = Downloads(folder)
            found = downloads.folder_of(["one"])
            if found is not None:
                downloads.read(found, "one")
        except ValueError as error:
            assert f"{name}: expected an archive that can be read" in str(error)  # noqa: PT017
