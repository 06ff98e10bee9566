"""The place of a model's ONNX file."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import pytest

from tests.toy_encoders import Toy
from use_st5.encode.encoder import SentenceEncoder
from use_st5.engines.onnx_model import add_onnx_model, onnx_model, write_onnx_model
from use_st5.hub.model_manifest import ModelManifest, check_replaceable, describe_files
from use_st5.models.engines import family_engine
from use_st5.models.use_transformer.engine import ENGINE

pytest.importorskip("onnx", reason="the extra `onnx` is not installed")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_it_is_made_once(toy_use_transformer: Toy) -> None:
    folder = toy_use_transformer.folders["int8"]
    manifest = ModelManifest.read(folder)
    assert manifest is not None
    made = onnx_model(folder, manifest, ENGINE)
    content = made.read_bytes()
    status = made.stat()
    assert onnx_model(folder, manifest, ENGINE).stat().st_ino == status.st_ino
    made.write_bytes(content[:-1] + b"\0")
    assert onnx_model(folder, manifest, ENGINE).read_bytes() == content
    made.unlink()
    assert onnx_model(folder, manifest, ENGINE).read_bytes() == content


def damage(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def test_another_copy_of_a_model_has_no_influence(toy_use_transformer: Toy, tmp_path: Path) -> None:
    """Neither a damaged copy nor another model that claims the same hash."""
    folder, other = (toy_use_transformer.folders[name] for name in ("int8", "float32"))
    manifest, changed = (ModelManifest.read(each) for each in (folder, other))
    assert manifest is not None
    assert changed is not None
    claimed = onnx_model(
        other, dataclasses.replace(changed, model_hash=manifest.model_hash), ENGINE
    )
    copy = shutil.copytree(folder, tmp_path / "model")
    damage(copy / "variables" / "variables.data-00000-of-00001")
    with pytest.raises(ValueError, match=r"sha256 .* the file was changed"):
        onnx_model(copy, manifest, ENGINE)
    config = {"config": {**manifest.config["config"], "num_heads": 2}}
    configured = onnx_model(folder, dataclasses.replace(manifest, config=config), ENGINE)
    assert onnx_model(folder, manifest, ENGINE) not in (claimed, configured)


def test_a_cache_that_cannot_be_written_costs_time_alone(
    toy_use_transformer: Toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("onnxruntime", reason="the extra `onnx` is not installed")
    folder = toy_use_transformer.folders["int8"]
    expected = SentenceEncoder(folder, backend="onnx").encode("a b")
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.warns(UserWarning, match="Set XDG_CACHE_HOME to a folder that can be written"):
        found = SentenceEncoder(folder, backend="onnx").encode("a b")
    assert (found == expected).all()


def test_a_configuration_without_a_layer_is_refused(toy_use_transformer: Toy) -> None:
    folder = toy_use_transformer.folders["int8"]
    manifest = ModelManifest.read(folder)
    assert manifest is not None
    shape = manifest.config["config"]
    fewer = {**shape, "num_layers": shape["num_layers"] - 1, "early_output": None}
    with pytest.raises(ValueError, match="do not belong together"):
        onnx_model(folder, dataclasses.replace(manifest, config={"config": fewer}), ENGINE)
    longer = {**shape, "max_length": 10**12}
    with pytest.raises(ValueError, match="a max_length of 65,536 or less"):
        onnx_model(folder, dataclasses.replace(manifest, config={"config": longer}), ENGINE)


def test_a_model_that_one_file_cannot_hold_is_refused(
    toy_use_transformer: Toy, tmp_path: Path
) -> None:
    folder = toy_use_transformer.folders["int8"]
    manifest = ModelManifest.read(folder)
    assert manifest is not None
    large = dataclasses.replace(manifest, parameters=2**30)
    with pytest.raises(ValueError, match="less than 2,147,483,648 bytes in float32"):
        write_onnx_model(folder, large, ENGINE, tmp_path / "engine.onnx")


def test_it_may_be_beside_the_model(toy_use_transformer: Toy, tmp_path: Path) -> None:
    folder = shutil.copytree(toy_use_transformer.folders["int8"], tmp_path / "model")
    before = ModelManifest.read(folder)
    add_onnx_model(folder, before, family_engine)
    manifest = ModelManifest.read(folder)
    assert before is not None
    assert manifest is not None
    assert manifest.model_hash == before.model_hash == describe_files(folder)[1]
    manifest.check_contents(folder)
    assert onnx_model(folder, manifest, ENGINE) == folder / "engine.onnx"
    check_replaceable(folder)
    damage(folder / "engine.onnx")
    with pytest.raises(ValueError, match=r"sha256 .*engine\.onnx, found"):
        onnx_model(folder, manifest, ENGINE)


def test_models_without_an_engine_are_refused(toy_use_transformer: Toy) -> None:
    manifest = ModelManifest.read(toy_use_transformer.folders["int8"])
    assert manifest is not None
    folder = toy_use_transformer.folders["int8"]
    with pytest.raises(ValueError, match="found a SavedModel without use_st5.json"):
        add_onnx_model(folder, None, family_engine)
    with pytest.raises(ValueError, match="of the family other"):
        add_onnx_model(folder, dataclasses.replace(manifest, family="other"), family_engine)
