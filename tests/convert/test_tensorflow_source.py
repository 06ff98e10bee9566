from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf

from tests.models.tensorflow_checkpoint import write_checkpoint
from use_st5.convert.tensorflow_source import TensorFlowSource, is_tensorflow_checkpoint

A = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for step, value in ((1, A), (2, A + 1)):
        checkpoint = tf.train.Checkpoint(
            a=tf.Variable(value), b=tf.Variable(tf.cast(A, "bfloat16"))
        )
        checkpoint.write(str(tmp_path / f"model.ckpt-{step}"))
    text = 'model_checkpoint_path: "model.ckpt-2"\n'
    (tmp_path / "checkpoint").write_text(text, encoding="utf-8")
    return tmp_path


def test_a_prefix_an_index_and_the_newest_of_a_folder(folder: Path) -> None:
    for path, expected in (("model.ckpt-1", A), ("model.ckpt-1.index", A), ("", A + 1)):
        assert is_tensorflow_checkpoint(folder / path)
        source = TensorFlowSource(folder / path)
        assert source.shapes()["a"] == (2, 3)
        np.testing.assert_array_equal(source.read("a"), expected)
        assert source.read("b").dtype == ml_dtypes.bfloat16


def test_what_is_none(folder: Path) -> None:
    for path in (folder / "model.ckpt-3", folder / "checkpoint", folder.parent):
        assert not is_tensorflow_checkpoint(path)
        with pytest.raises(FileNotFoundError, match="expected a TensorFlow checkpoint"):
            TensorFlowSource(path)
    (folder / "model.ckpt-1.index").write_bytes(b"no table")
    with pytest.raises(ValueError, match="expected a TensorFlow checkpoint.*Copy it again"):
        TensorFlowSource(folder / "model.ckpt-1")


def test_an_index_that_lacks_a_part(folder: Path) -> None:
    """TensorFlow raises different kinds of errors, depending on the missing part."""
    index = folder / "model.ckpt-1.index"
    whole = index.read_bytes()
    for place, missing in ((0, 3), (0, 60), (120, 60), (len(whole) - 3, 3)):
        index.write_bytes(whole[:place] + whole[place + missing :])
        with pytest.raises(ValueError, match=r"model.ckpt-1: expected .*[Cc]opy"):
            TensorFlowSource(folder / "model.ckpt-1").read("a")


def test_optimizers_are_left_out(tmp_path: Path) -> None:
    names = (
        "model/kernel/.ATTRIBUTES/VARIABLE_VALUE",
        "model/kernel/.OPTIMIZER_SLOT/optimizer/m/.ATTRIBUTES/VARIABLE_VALUE",
        "_CHECKPOINTABLE_OBJECT_GRAPH",
        "encoder/block_000/scale",
        "encoder/block_000/scale_slot_vr",
        "encoder/global_step_layer",
        "global_step",
        "bert/encoder/layer_0/output/dense/kernel/adam_m",
        "bert/encoder/layer_0/output/dense/kernel/adam_v",
    )
    tensors = {name: np.full(2, number, "f") for number, name in enumerate(names)}
    write_checkpoint(tmp_path / "c", tensors)
    source = TensorFlowSource(tmp_path / "c")
    found = {name: source.read(name)[0] for name in source.shapes()}
    assert found == {
        "model/kernel": 0,
        "encoder/block_000/scale": 3,
        "encoder/global_step_layer": 5,
    }
    source.check_stored(source.shapes())
