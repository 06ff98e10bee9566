"""Machines with empty disks: what they have in common lies elsewhere."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest


@pytest.fixture
def new_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], Path]]:
    """`new_machine()` removes what this process has on its disk, and gives an empty folder.

    At the end nothing may have been written into a folder that is called like a scheme.
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
