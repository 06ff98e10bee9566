"""A model for workers: it is found or downloaded, and any other model is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import use_st5
from use_st5.beam.model import ModelSource
from use_st5.hub.model_names import bundled_folder


def test_a_model_is_described_by_its_files() -> None:
    source = ModelSource.of("use_dan_en")
    encoder = use_st5.load("use_dan_en")
    assert source == ModelSource("use_dan_en", encoder.name, encoder.identity)
    assert source.load() is encoder


def test_a_model_without_a_manifest_is_described_by_its_files(
    toy_use_dan: Any, tmp_path: Path
) -> None:
    import shutil

    folder = tmp_path / "foreign"
    shutil.copytree(toy_use_dan.folders["float32"], folder)
    (folder / "use_st5.json").unlink()
    source = ModelSource.of(str(folder))
    assert source.name == "foreign"
    assert source.load().identity == source.model_hash


def test_a_worker_with_another_model_is_refused(fake: Any) -> None:
    source = ModelSource.of("use_dan_en")
    fake.identity = "another"
    with pytest.raises(ValueError, match=r"Expected the model use_dan_en .* found another on this"):
        source.load()


def test_a_model_that_is_not_there() -> None:
    with pytest.raises(FileNotFoundError, match="Did you mean 'use_dan_en'"):
        ModelSource.of("use_dan_em")


def test_a_model_is_fetched_by_its_url(remote_toy: str, toy_use_dan: Any) -> None:
    source = ModelSource.of(remote_toy)
    encoder = source.load()
    assert encoder.identity == use_st5.load(toy_use_dan.folders["float32"]).identity
    assert source.load() is encoder
    with pytest.raises(FileNotFoundError, match="found no files in toy://none"):
        ModelSource.of("toy://none")


def test_a_name_that_points_outside_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("apache_beam", reason="the extra `beam` is not installed")
    from tests.beam.toy_file_system import ToyFileSystem

    monkeypatch.setattr(ToyFileSystem, "root", tmp_path)
    (tmp_path / "evil").mkdir()
    (tmp_path / "evil" / "..\\..\\up.py").write_text("import this")
    with pytest.raises(ValueError, match="toy://evil: expected names inside this folder"):
        ModelSource.of("toy://evil")


@pytest.fixture
def remote_toy(toy_use_dan: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of a toy model on a file system that is not the local one."""
    pytest.importorskip("apache_beam", reason="the extra `beam` is not installed")
    from tests.beam.toy_file_system import ToyFileSystem

    folder = toy_use_dan.folders["float32"]
    monkeypatch.setattr(ToyFileSystem, "root", folder.parent)
    return f"toy://{folder.name}"


def test_bundled_models_need_no_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert ModelSource.of("use_dan_en").place == "use_dan_en"
    assert ModelSource.of(str(bundled_folder("use_dan_en"))).name == "use_dan_en"
