"""The folders of bundled models: in a wheel, in a checkout, and when there is no model."""

from __future__ import annotations

from pathlib import Path

import pytest

from use_st5.hub import bundled


def make_model(folder: Path) -> None:
    """Makes a folder that looks like a SavedModel."""
    folder.mkdir(parents=True)
    (folder / "saved_model.pb").write_bytes(b"")


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package folder in an otherwise empty checkout."""
    folder = tmp_path / "use_st5"
    folder.mkdir()
    monkeypatch.setattr(bundled, "_PACKAGE", folder)
    return folder


def test_none(package: Path) -> None:
    assert bundled.bundled_names() == ()
    with pytest.raises(FileNotFoundError, match="'use_dan_en'. Bundled here: none"):
        bundled.bundled_folder("use_dan_en")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "sentence-transformers/sentence-t5-base",
            "write hf://sentence-transformers/sentence-t5-base",
        ),
        ("all-MiniLM-L6-v2", "write hf://OWNER/all-MiniLM-L6-v2"),
        ("/data/t5", ""),
        ("../t5", ""),
        ("a/b/c", ""),
        ("gs://bucket/t5", ""),
    ],
)
def test_how_a_model_of_a_hub_comes_here(name: str, said: str) -> None:
    found = bundled.download_advice(name)
    assert said in found
    assert bool(said) == bool(found)


def test_in_a_checkout(package: Path) -> None:
    models = package.parent / "saved_models"
    make_model(models / "b")
    make_model(models / "a")
    (models / "not_a_model").mkdir()
    (models / "README.md").write_text("")
    assert bundled.bundled_names() == ("a", "b")
    assert bundled.bundled_folder("a") == models / "a"


def test_in_a_wheel_the_package_has_its_own(package: Path) -> None:
    make_model(package.parent / "saved_models" / "somebody_elses")
    make_model(package / "saved_models" / "a")
    assert bundled.bundled_names() == ("a",)
    assert bundled.bundled_folder("a") == package / "saved_models" / "a"


@pytest.mark.parametrize("name", ["c", "", ".", "../saved_models/a", "a/"])
def test_other_names_are_refused(package: Path, name: str) -> None:
    make_model(package.parent / "saved_models" / "a")
    with pytest.raises(FileNotFoundError, match="Bundled here: a"):
        bundled.bundled_folder(name)
