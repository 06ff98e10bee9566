from __future__ import annotations

from pathlib import Path

import pytest

from tests.resources.records import write_folder
from use_st5.resources.measured_model import find_models


def test_models_that_share_a_name_are_called_by_their_folders(tmp_path: Path) -> None:
    given = [
        write_folder(tmp_path / "float32", "dan"),
        write_folder(tmp_path / "int8", "dan"),
        write_folder(tmp_path / "third", "transformer"),
    ]
    found = find_models(given)
    assert [model.name for _, model in found] == ["float32", "int8", "transformer"]
    assert [folder for folder, _ in found] == [folder.resolve() for folder in given]


def test_models_that_cannot_be_told_apart(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "a", "dan")
    with pytest.raises(ValueError, match="received 2 called a in folders of one name"):
        find_models([folder, folder])


def test_a_saved_model_of_another_origin(tmp_path: Path) -> None:
    (tmp_path / "saved_model.pb").write_text("graph")
    with pytest.raises(ValueError, match="expected a model that use_st5 exported"):
        find_models([tmp_path])


def test_no_models() -> None:
    with pytest.raises(ValueError, match="at least one model"):
        find_models([])
