"""`atomic_path` writes all or nothing; `sole_writer` admits one process at a time."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from use_st5.io.files import atomic_path, sole_writer


class BrokenError(Exception):
    """The error that the tests raise inside a block."""


def names(folder: Path) -> list[str]:
    """Lists everything below a folder, hidden names too."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


@pytest.mark.parametrize("older", [None, "old"])
def test_a_file_appears_only_at_the_end(tmp_path: Path, older: str | None) -> None:
    target = tmp_path / "vectors.npy"
    if older is not None:
        target.write_text(older)
    with atomic_path(target) as temporary:
        np.save(temporary, np.ones(3))  # It looks at the suffix.
        assert temporary.parent == tmp_path
        assert (target.read_text() if target.exists() else None) == older
    assert np.load(target).tolist() == [1, 1, 1]
    assert names(tmp_path) == ["vectors.npy"]


@pytest.mark.parametrize("error", [BrokenError, KeyboardInterrupt])
def test_error_leaves_the_older_file_and_no_rest(
    tmp_path: Path, error: type[BaseException]
) -> None:
    target = tmp_path / "notes.txt"
    target.write_text("old")
    with pytest.raises(error), atomic_path(target) as temporary:
        temporary.write_text("half")
        raise error
    assert target.read_text() == "old"
    assert names(tmp_path) == ["notes.txt"]


def test_folder_is_replaced_as_a_whole(tmp_path: Path) -> None:
    target = tmp_path / "model"
    (target / "deep").mkdir(parents=True)
    (target / "deep" / "old").write_text("old")
    with atomic_path(target) as temporary:
        (temporary / "deep").mkdir(parents=True)
        (temporary / "deep" / "new").write_text("new")
    assert names(tmp_path) == ["model", "model/deep", "model/deep/new"]


def test_older_folder_comes_back_when_the_rename_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "model"
    target.mkdir()
    (target / "old").write_text("old")

    def fail(path: Path, new: Path) -> Path:
        raise OSError("no")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="no"), atomic_path(target) as temporary:
        temporary.mkdir()
    assert names(tmp_path) == ["model", "model/old"]


def test_a_full_disk_does_not_prevent_a_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write_text(path: Path, *_: object, **__: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", write_text)
    with sole_writer(tmp_path / "out"):
        assert names(tmp_path) == [".out.use_st5.lock"]


def test_a_device_is_not_replaced() -> None:
    with pytest.raises(FileExistsError, match="found a device"), atomic_path(os.devnull):
        pytest.fail("it would have been")
    assert not Path(os.devnull).is_file()


def test_nothing_and_a_folder_for_a_file_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("old")
    (tmp_path / "folder").mkdir()
    with pytest.raises(FileNotFoundError), atomic_path(tmp_path / "file"):
        pass
    with pytest.raises(NotADirectoryError), atomic_path(tmp_path / "file") as temporary:
        temporary.mkdir()
    with pytest.raises(IsADirectoryError), atomic_path(tmp_path / "folder") as temporary:
        temporary.write_text("new")
    assert names(tmp_path) == ["file", "folder"]
    assert (tmp_path / "file").read_text() == "old"


def test_parents_are_made_and_the_current_folder_may_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    with atomic_path("a/b/notes.txt") as temporary:
        temporary.write_text("new")
        monkeypatch.chdir(tmp_path / "elsewhere")
    assert (tmp_path / "a" / "b" / "notes.txt").read_text() == "new"


def test_symbolic_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real.txt").write_text("old")
    (link := tmp_path / "link.txt").symlink_to(tmp_path / "real.txt")
    with atomic_path(link) as temporary:
        temporary.write_text("new")
    assert link.is_symlink()
    assert (tmp_path / "real.txt").read_text() == "new"


KILLED_WRITER = """
    import os, signal, sys
    from pathlib import Path
    from use_st5.io.files import atomic_path, sole_writer

    def die(*_):
        os.kill(os.getpid(), signal.SIGKILL)

    with sole_writer(sys.argv[1]), atomic_path(sys.argv[1]) as temporary:
        temporary.mkdir()
        (temporary / "weights").write_text("half")
        if sys.argv[2] == "writing":
            die()
        # The older folder is moved aside, and this one not yet in its place.
        Path.replace = lambda path, new: die()
"""


@pytest.mark.process
@pytest.mark.parametrize("inside", [True, False])
def test_a_second_process_is_refused_in_one_line(
    tmp_path: Path, written_elsewhere: Callable[..., int], inside: bool
) -> None:
    target = tmp_path / "new" / "model"
    process = written_elsewhere(target, inside=inside)
    with pytest.raises(BlockingIOError) as caught, sole_writer(target, inside=inside):
        pytest.fail("two sole writers")
    assert f"{target} is being written by process {process} " in str(caught.value)
    with sole_writer(tmp_path / "new" / "model2"):  # another target is free
        pass
    assert "new/.model2.use_st5.lock" not in names(tmp_path)


def test_lock_files_of_other_programs_stay_as_they_are(tmp_path: Path) -> None:
    for name in (".v2.npy.lock", "folder/.lock", "folder/.v2.npy.lock"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("mine")
    before = names(tmp_path)
    with sole_writer(tmp_path / "v2.npy"), sole_writer(tmp_path / "folder", inside=True):
        pass
    assert names(tmp_path) == before
    assert (tmp_path / ".v2.npy.lock").read_text() == "mine"
    assert (tmp_path / "folder" / ".lock").read_text() == "mine"


@pytest.mark.process
@pytest.mark.skipif(os.name == "nt", reason="Windows knows no SIGKILL")
@pytest.mark.parametrize("moment", ["writing", "replacing"])
def test_what_a_killed_writer_left_is_gone_with_the_next_and_nothing_is_lost(
    tmp_path: Path, moment: str
) -> None:
    target = tmp_path / "model"
    target.mkdir()
    (target / "weights").write_text("old")
    for near in ("model2", ".model.note", ".model.use_st5-0123456789ab.txt", ".model.0123456789ab"):
        (tmp_path / near).write_text("another's")
    before = names(tmp_path)
    code = textwrap.dedent(KILLED_WRITER)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    done = subprocess.run([sys.executable, "-c", code, target, moment], env=environment)
    assert done.returncode == -signal.SIGKILL
    assert len(names(tmp_path)) > len(before)
    with sole_writer(target):
        assert (target / "weights").read_text() == "old"
        assert names(tmp_path) == sorted([*before, ".model.use_st5.lock"])
    assert names(tmp_path) == before


def test_sole_writers_of_one_process_lie_within_each_other(tmp_path: Path) -> None:
    run = tmp_path / "run"
    (run / "model").mkdir(parents=True)
    (run / ".model.use_st5-0123456789ab").mkdir()
    with sole_writer(run, inside=True):
        with sole_writer(run / "model"), sole_writer(run / "model"):
            pass
        with atomic_path(run / "notes.txt") as temporary, sole_writer(run, inside=True):
            temporary.write_text("whole")
        assert names(run) == [".use_st5.lock", "model", "notes.txt"]
    assert names(run) == ["model", "notes.txt"]
