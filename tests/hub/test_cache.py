"""The cache folder: only complete entries, a size limit, and the longest unused go first."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from use_st5.hub import cache
from use_st5.hub.cache import (
    MODELS,
    REMOTE,
    cache_folder,
    entries,
    kept_content,
    remove_entry,
)
from use_st5.io.files import staging_path


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def add(key: str, size: int, used: int, part: str = MODELS) -> None:
    def make(target: Path) -> None:
        target.mkdir()
        (target / "weights").write_bytes(b"x" * size)

    kept_content(part, key, f"hf://org/{key}@1", make)
    os.utime(cache_folder(part) / key / "origin.txt", (used, used))


def test_the_longest_unused_entries_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cache.LIMIT, "0.00001")  # 10,000 bytes
    add("a", 4_000, 1)
    add("b", 4_000, 2)
    (cache_folder(REMOTE) / "copy").mkdir()
    (cache_folder(REMOTE) / "copy" / "file").write_bytes(b"x" * 90_000)
    kept_content(MODELS, "a", "a", pytest.fail)  # used now, after b
    add("c", 4_000, 3)
    assert {each.origin for each in entries()} == {"hf://org/a@1", "hf://org/c@1", "copy"}
    add("d", 50_000, 4)  # larger than the limit: only this one stays
    assert [each.folder.name for each in entries() if each.kind == MODELS] == ["d"]


def test_an_entry_appears_when_it_is_complete() -> None:
    def interrupted(target: Path) -> None:
        target.mkdir()
        assert not entries()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        kept_content(MODELS, "a", "a", interrupted)
    assert not list(cache_folder(MODELS).iterdir())


def test_an_interrupted_removal_leaves_no_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    add("a", 5, 1)
    with monkeypatch.context() as patch:
        patch.setattr(cache.shutil, "rmtree", lambda *_, **__: None)
        remove_entry(cache_folder(MODELS) / "a")
    assert not entries()


@pytest.mark.parametrize("part", [MODELS, REMOTE])
def test_what_a_killed_process_left_is_removed_after_a_day(part: str) -> None:
    for name, age in (("tmpold", 2 * 86_400), ("tmpnew", 3_600)):
        folder = cache_folder(part) / name
        folder.mkdir()
        os.utime(folder, (time.time() - age,) * 2)
    add("a", 5, 1)
    assert {each.name for each in cache_folder(part).iterdir()} - {"a"} == {"tmpnew"}


def test_files_that_are_not_uploaded_yet_are_no_entries() -> None:
    staging_path("gs://bucket/vectors.npy").parent.mkdir()
    assert not entries()


def test_the_first_of_two_writers_stays() -> None:
    def slow(target: Path) -> None:
        target.mkdir()
        (target / "file").write_text("second")
        add("a", 5, 1)

    assert (kept_content(MODELS, "a", "a", slow) / "weights").is_file()


@pytest.mark.parametrize("value", ["many", "-1", "nan", "inf"])
def test_limits_that_are_no_numbers(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cache.LIMIT, value)
    with pytest.raises(ValueError, match="USE_ST5_CACHE_GB: expected a number of GB"):
        cache.limit()
