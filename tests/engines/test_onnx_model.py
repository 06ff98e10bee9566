"""The place of a model's ONNX file."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import pytest

from tests.toy_encoders import Toy
from use_st5._model_manifest import ModelManifest, check_replaceable, describe_files
from use_st5.encoder import SentenceEncoder
from use_st5.engines.onnx_model import add_onnx_model, onnx_model, write_onnx_model

pytest.importorskip("onnx", reason="the extra `onnx` is not installed")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_it_is_made_once(toy_use_transformer: Toy) -> None:
    folder = toy_use_transformer.folders["int8"]
    manifest = ModelManifest.read(folder)
    assert manifest is not None
    made = onnx_model(folder, manifest)
    content = made.read_bytes()
    made.write_bytes(b"another")
    assert onnx_model(folder, manifest).read_bytes() == b"another"
    pytest.importorskip("onnxruntime", reason="the extra `onnx` is not installed")
    with pytest.raises(ValueError, match="Remove the file: it is made again"):
        SentenceEncoder(folder, backend="onnx")
    made.parent.parent.rename(made.parent.parent.with_name("gone"))
    assert onnx_model(folder, manifest).read_bytes() == content


def test_a_model_that_one_file_cannot_hold_is_refused(
    toy_use_transformer: Toy, tmp_path: Path
) -> None:
    folder = toy_use_transformer.folders["int8"]
    manifest = ModelManifest.read(folder)
    assert manifest is not None
    large = dataclasses.replace(manifest, parameters=2**30)
    with pytest.raises(ValueError, match="less than 2,147,483,648 bytes in float32"):
        write_onnx_model(folder, large, tmp_path / "engine.onnx")


def test_it_may_be_beside_the_model(toy_use_transformer: Toy, tmp_path: Path) -> None:
    folder = shutil.copytree(toy_use_transformer.folders["int8"], tmp_path / "model")
    before = ModelManifest.read(folder)
    add_onnx_model(folder, before)
    manifest = ModelManifest.read(folder)
    assert before is not None
    assert manifest is not None
    assert manifest.model_hash == before.model_hash == describe_files(folder)[1]
    manifest.check_contents(folder)
    assert onnx_model(folder, manifest) == folder / "engine.onnx"
    check_replaceable(folder)


def test_models_without_an_engine_are_refused(toy_use_transformer: Toy) -> None:
    manifest = ModelManifest.read(toy_use_transformer.folders["int8"])
    assert manifest is not None
    folder = toy_use_transformer.folders["int8"]
    with pytest.raises(ValueError, match="found a SavedModel without use_st5.json"):
        add_onnx_model(folder, None)
    with pytest.raises(ValueError, match="runs the families use_dan, .* of the family other"):
        add_onnx_model(folder, dataclasses.replace(manifest, family="other"))
