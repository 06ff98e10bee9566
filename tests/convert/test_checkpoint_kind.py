from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from tests.convert.t5x_writer import write_file, write_folder
from use_st5.convert.checkpoint_kind import OPENERS, CheckpointKind, checkpoint_kind

TENSORS = {"encoder/kernel": np.zeros((2, 2), np.float32)}


def test_each_kind(tmp_path: Path) -> None:
    (tmp_path / "config.json").touch()
    assert checkpoint_kind(tmp_path) is CheckpointKind.HUGGING_FACE
    (tmp_path / "modules.json").touch()
    assert checkpoint_kind(tmp_path) is CheckpointKind.SENTENCE_TRANSFORMERS
    write_file(tmp_path / "t5.checkpoint_0", TENSORS)
    write_folder(tmp_path / "checkpoint_1", TENSORS)
    for name in ("t5.checkpoint_0", "checkpoint_1"):
        assert checkpoint_kind(tmp_path / name) is CheckpointKind.T5X


def save(prefix: Path, *names: str) -> None:
    zeros = [tf.zeros(2)] * len(names)
    tf.raw_ops.SaveV2(
        prefix=str(prefix), tensor_names=names, shape_and_slices=[""] * len(names), tensors=zeros
    )


def test_tensorflow_checkpoints_by_their_names(tmp_path: Path) -> None:
    norm = "model/encoder/output_norm/weight/.ATTRIBUTES/VARIABLE_VALUE"
    save(tmp_path / "a", "shared/embedding")
    save(tmp_path / "b", norm)
    save(tmp_path / "c", "bert/embeddings")
    assert checkpoint_kind(tmp_path / "a") is CheckpointKind.MESH_TENSORFLOW
    assert checkpoint_kind(tmp_path / "b.index") is CheckpointKind.MODEL_GARDEN
    with pytest.raises(ValueError, match="c: expected a T5 of Mesh TensorFlow or of the Model"):
        checkpoint_kind(tmp_path / "c")
    (tmp_path / "checkpoint").write_text('model_checkpoint_path: "a"', encoding="utf-8")
    assert checkpoint_kind(tmp_path) is CheckpointKind.MESH_TENSORFLOW


def test_what_is_none(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="x: expected a checkpoint, found nothing"):
        checkpoint_kind(tmp_path / "x")
    (tmp_path / "pytorch_model.bin").write_bytes(b"PK")
    for path in (tmp_path, tmp_path / "pytorch_model.bin"):
        with pytest.raises(ValueError, match="expected a folder of Hugging Face or"):
            checkpoint_kind(path)


def test_the_real_ones(data_dir: Path) -> None:
    folder = data_dir / "weights"
    kinds = {
        "t5x_retrieval-de_t5_tiny/t5x_retrieval/testdata/test_de_t5_tiny.checkpoint_1000": "T5X",
        "t5x-testdata/t5x/testdata/test_t5_tiny.checkpoint_0": "T5X",
        "t5x-testdata/t5x/testdata/mtf_tiny_t5": "Mesh TensorFlow",
    }
    for path, kind in kinds.items():
        assert checkpoint_kind(folder / path).value == kind
        OPENERS[checkpoint_kind(folder / path)](folder / path)
