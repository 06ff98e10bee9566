"""`use-st5 cache`: listing and removing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from typer.testing import Result

from use_st5.hub.cache import ARCHIVES, MODELS, entries, kept_content
from use_st5.hub.model_names import Fetched, _record, recorded

NAME, URL = "hf://org/model", "https://example.com/a.zip"


@pytest.fixture(autouse=True)
def _filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("USE_ST5_CACHE_GB", raising=False)
    for part, key, origin, size in ((MODELS, "m", f"{NAME}@1", 3_000), (ARCHIVES, "a", URL, 5_000)):
        content = kept_content(part, key, origin, Path.mkdir)
        (content / "file").write_bytes(b"x" * size)
    for name in (NAME, URL):
        fetched = Fetched(name=name, identity="1", folder=str(tmp_path))
        _record(name).write_bytes(msgspec.json.encode(fetched))


def test_it_lists_names_and_sizes(use: Callable[..., Result], tmp_path: Path) -> None:
    done = use("cache")
    assert done.exit_code == 0, done.output
    rows = [line.split("\t")[:2] for line in done.stdout.splitlines()[1:]]
    assert sorted(rows) == [[f"{NAME}@1", "models"], [URL, "archives"]]
    assert f"{tmp_path / 'cache' / 'use_st5'}; limit 20,000.0 MB" in done.stderr


def test_a_name_is_removed_and_forgotten(use: Callable[..., Result]) -> None:
    done = use("cache", "--clear", NAME)
    assert done.exit_code == 0, done.output
    assert [each.origin for each in entries()] == [URL]
    assert [each.name for each in recorded()] == [URL]


def test_everything_is_removed(use: Callable[..., Result]) -> None:
    assert use("cache", "--clear").exit_code == 0
    assert not entries()
    assert not recorded()


def test_an_unknown_name_removes_nothing(use: Callable[..., Result]) -> None:
    done = use("cache", "--clear", NAME, "hf://org/other")
    assert done.exit_code == 1
    assert "found none of ['hf://org/other']" in done.output
    assert len(entries()) == 2
