from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from safetensors.numpy import save_file

from tests.convert.t5x_writer import write_file, write_folder
from use_st5.convert.checkpoint import open_checkpoint

TENSORS = {"encoder/kernel": np.zeros((2, 2), np.float32)}
SHAPES = {"encoder/kernel": (2, 2)}


def write_json(path: Path, content: object) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")


def test_folders(tmp_path: Path) -> None:
    save_file(TENSORS, tmp_path / "model.safetensors")
    write_json(tmp_path / "config.json", {"model_type": "bert"})
    checkpoint = open_checkpoint(tmp_path)
    assert (checkpoint.format, checkpoint.settings["model_type"]) == ("Hugging Face", "bert")
    assert checkpoint.folder == checkpoint.where == tmp_path
    assert checkpoint.source.shapes() == SHAPES
    assert checkpoint.summary() == "Hugging Face with model_type 'bert'"
    modules = [
        {"type": "sentence_transformers.models.Transformer", "path": ""},
        {"type": "sentence_transformers.models.Pooling", "path": "1"},
    ]
    write_json(tmp_path / "modules.json", modules)
    write_json(tmp_path / "1" / "config.json", {"pooling_mode": "cls"})
    checkpoint = open_checkpoint(tmp_path)
    assert (checkpoint.format, checkpoint.folder) == ("sentence-transformers", tmp_path)
    assert checkpoint.source.shapes() == SHAPES


def test_a_name_of_a_hub_is_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match="nothing of this name.* write hf://OWNER/t5-base"):
        open_checkpoint("t5-base")


def test_the_pooling_is_said_once(tmp_path: Path) -> None:
    save_file(TENSORS, tmp_path / "model.safetensors")
    write_json(tmp_path / "config.json", {})
    alone = open_checkpoint(tmp_path)
    assert (alone.pooling, alone.chosen(pooling="cls").pooling) == (None, "cls")
    modules = [
        {"type": "sentence_transformers.models.Transformer", "path": ""},
        {"type": "sentence_transformers.models.Pooling", "path": "1"},
    ]
    write_json(tmp_path / "modules.json", modules)
    write_json(tmp_path / "1" / "config.json", {"pooling_mode": "max"})
    told = open_checkpoint(tmp_path)
    assert told.pooling == "max"
    with pytest.raises(ValueError, match=r"modules.json: sets the pooling.*mean"):
        told.chosen(pooling="mean")


def test_checkpoints_of_t5x(tmp_path: Path) -> None:
    write_file(tmp_path / "t5.checkpoint_0", TENSORS)
    write_folder(tmp_path / "checkpoint_1", TENSORS)
    for name in ("t5.checkpoint_0", "checkpoint_1", "checkpoint_1/checkpoint"):
        checkpoint = open_checkpoint(tmp_path / name)
        assert (checkpoint.format, checkpoint.folder) == ("T5X", None)
        assert checkpoint.source.shapes() == SHAPES


def test_checkpoints_of_tensorflow(tmp_path: Path) -> None:
    tf.train.Checkpoint(encoder=tf.train.Checkpoint(kernel=tf.Variable(tf.zeros((2, 2))))).write(
        str(tmp_path / "a")
    )
    (tmp_path / "checkpoint").write_text('model_checkpoint_path: "a"', encoding="utf-8")
    for path in (tmp_path, tmp_path / "a", tmp_path / "a.index"):
        checkpoint = open_checkpoint(path)
        assert (checkpoint.format, checkpoint.source.shapes()) == ("TensorFlow", SHAPES)
    assert checkpoint.summary() == "TensorFlow with the tensors encoder/kernel"


def test_what_is_none(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="x: there is nothing of this name"):
        open_checkpoint(tmp_path / "x")
    (tmp_path / "pytorch_model.bin").write_bytes(b"PK")
    for path in (tmp_path, tmp_path / "pytorch_model.bin"):
        with pytest.raises(ValueError, match="expected a checkpoint of"):
            open_checkpoint(path)
