"""The description of an exported model, and damage that it finds."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from use_st5.hub.model_manifest import ModelManifest, describe_files


@pytest.fixture
def folder(toy_use_dan: Any, tmp_path: Path) -> Path:
    return Path(shutil.copytree(toy_use_dan.folders["int8"], tmp_path / "copy"))


def read(folder: Path) -> ModelManifest:
    manifest = ModelManifest.read(folder)
    assert manifest is not None
    return manifest


def test_what_it_says(folder: Path, toy_use_dan: Any) -> None:
    manifest = read(folder)
    rows = toy_use_dan.tokenizer.vocabulary.size
    network = 8 * 12 + 12 * 16 + 8 * 16
    assert manifest.name == "toy"
    assert (manifest.dimension, manifest.max_length) == (16, None)
    assert manifest.parameters == rows * 8 + rows + network
    assert manifest.trainable_parameters == rows + network
    assert set(manifest.versions) == {"use_st5", "tensorflow", "keras"}
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != "use_st5.json"]
    assert manifest.size_bytes == sum(path.stat().st_size for path in files)
    assert len(manifest.files) == len(files)
    manifest.check_contents(folder)


def test_hash_is_of_the_model_not_of_its_card(folder: Path) -> None:
    before = describe_files(folder)[1]
    assert before == read(folder).model_hash
    (folder / "README.md").write_text("another card")
    assert describe_files(folder)[1] == before
    read(folder).check_contents(folder)  # Its owner may write a better card.
    with (folder / "assets" / "vocabulary.txt").open("a") as file:
        file.write("another word\n")
    assert describe_files(folder)[1] != before


def test_finds_cut_and_changed_and_missing_files(folder: Path) -> None:
    manifest = read(folder)
    path = folder / "variables" / "variables.data-00000-of-00001"
    content = path.read_bytes()
    path.write_bytes(content[:-1])
    with pytest.raises(ValueError, match=f"Expected {len(content)} bytes in .*found"):
        manifest.check_sizes(folder)
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    manifest.check_sizes(folder)
    with pytest.raises(ValueError, match="Expected sha256"):
        manifest.check_contents(folder)
    path.unlink()
    with pytest.raises(ValueError, match="no such file"):
        manifest.check_sizes(folder)


def test_unreadable_descriptions(folder: Path) -> None:
    path = folder / "use_st5.json"
    fields = json.loads(path.read_text())
    path.write_text(json.dumps(fields | {"format": 2, "unheard_of": 1}))
    with pytest.raises(ValueError, match=r"\$.format: expected 1, received 2: .*Update use_st5"):
        ModelManifest.read(folder)
    for damaged in ("{", "[]", json.dumps({"format": 1, "name": "x"})):
        path.write_text(damaged)
        with pytest.raises(ValueError, match=r"use_st5.json: .*export the model again"):
            ModelManifest.read(folder)
    path.unlink()
    assert ModelManifest.read(folder) is None


FILE = {"bytes": 3, "sha256": "0" * 64}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dimension": "16"}, r"\$.dimension: expected int, received str"),
        ({"precision": "int3"}, r"\$.precision: invalid enum value 'int3'"),
        ({"parameters": 10**30}, r"\$.parameters: expected int <="),
        ({"files": {"a": {**FILE, "bytes": -3}}}, r"\$.files\[...\].bytes: expected int >= 0"),
        ({"files": {"a": {**FILE, "sha256": "x"}}}, r"\$.files\[...\].sha256: expected str match"),
        ({"files": {"../a": FILE}}, r"\$.files: expected a path inside .* received '../a'"),
    ],
)
def test_fields_of_another_kind(folder: Path, changes: dict[str, Any], message: str) -> None:
    path = folder / "use_st5.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    with pytest.raises(ValueError, match=rf"use_st5.json: {message}"):
        ModelManifest.read(folder)
