"""A folder as one file: its contents and their order."""

from __future__ import annotations

import os
import tarfile
from pathlib import Path

from use_st5.export.archive import write_archive


def test_names_are_sorted_and_nothing_of_the_machine_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    (folder / "variables").mkdir(parents=True)
    (folder / "saved_model.pb").write_bytes(b"graph")
    (folder / "variables" / "a").write_bytes(b"weights")
    (folder / "link").symlink_to(folder / "saved_model.pb")
    write_archive(folder, tmp_path / "one.tar.gz")
    for path in sorted(folder.rglob("*")):
        os.utime(path, (1, 1))
        path.chmod(0o700)
    write_archive(folder, tmp_path / "two.tar.gz")
    assert (tmp_path / "one.tar.gz").read_bytes() == (tmp_path / "two.tar.gz").read_bytes()
    with tarfile.open(tmp_path / "one.tar.gz") as archive:
        entries = archive.getmembers()
        assert [entry.name for entry in entries] == [
            "link",
            "saved_model.pb",
            "variables",
            "variables/a",
        ]
        assert archive.extractfile("link").read() == b"graph"
    assert {(each.mtime, each.uid, each.gid, each.uname) for each in entries} == {(0, 0, 0, "")}
    assert [entry.isfile() for entry in entries] == [True, True, False, True]
