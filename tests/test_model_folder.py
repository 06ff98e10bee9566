"""Finding the folder of a model by its path or its name."""

from __future__ import annotations

from pathlib import Path

import pytest

from use_st5 import _model_folder
from use_st5._model_folder import model_folder


def test_a_folder_goes_before_a_bundled_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_model_folder, "bundled_names", lambda: ("mine",))
    monkeypatch.setattr(_model_folder, "bundled_folder", lambda name: tmp_path / "bundled" / name)
    monkeypatch.chdir(tmp_path)
    assert model_folder("mine") == tmp_path / "bundled" / "mine"
    (tmp_path / "mine").mkdir()
    assert model_folder("mine") == tmp_path / "bundled" / "mine"  # no SavedModel there
    (tmp_path / "mine" / "saved_model.pb").touch()
    assert model_folder("mine") == tmp_path / "mine"


def test_what_was_expected_and_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_model_folder, "bundled_names", lambda: ("use_dan_en",))
    with pytest.raises(FileNotFoundError, match="Did you mean 'use_dan_en'"):
        model_folder("use-dan-en")
    with pytest.raises(FileNotFoundError, match="write hf://org/use-dan$"):
        model_folder("org/use-dan")
    with pytest.raises(FileNotFoundError, match="the folder is empty"):
        model_folder(tmp_path)
    (tmp_path / "variables").mkdir()
    (tmp_path / "config.json").touch()
    with pytest.raises(FileNotFoundError, match="found config.json, variables/"):
        model_folder(tmp_path)
    with pytest.raises(FileNotFoundError, match="found a file"):
        model_folder(tmp_path / "config.json")
