"""Simulated machines with empty disks; they share only files that are stored elsewhere."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest


@pytest.fixture
def new_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], Path]]:
    """`new_machine()` removes the local files of this process, and returns an empty folder.

    At the end there must be no folder that is named like a URL scheme, such as `gs:`.
    """
    numbers, machines = itertools.count(), tmp_path / "machines"

    def begin() -> Path:
        _check(tmp_path)
        shutil.rmtree(machines, ignore_errors=True)
        home = machines / str(next(numbers))
        home.mkdir(parents=True)
        monkeypatch.setenv("XDG_CACHE_HOME", str(home / "cache"))
        monkeypatch.chdir(home)
        return home

    begin()
    yield begin
    _check(tmp_path)


def _check(folder: Path) -> None:
    assert not [each for each in folder.rglob("*") if each.name.endswith(":")]
