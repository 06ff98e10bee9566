"""Tensors by name in safetensors and TensorFlow's checkpoints, and in a model's variables."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import keras
import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf
from safetensors.numpy import save_file

from tests.models.tensorflow_checkpoint import write_checkpoint
from use_st5.convert import sources, weights
from use_st5.convert.sources import (
    SAFETENSORS,
    SafetensorsSource,
    TensorFlowSource,
    tensorflow_prefix,
)
from use_st5.convert.weights import (
    Target,
    WeightSource,
    assign_weights,
    check_shapes,
    check_vocabulary,
)


class Arrays(WeightSource):
    """A source of arrays; if `rows` is set, each row is a piece."""

    where = "the checkpoint"
    rows = False

    def __init__(self, **tensors: np.ndarray) -> None:
        self.tensors = tensors
        self.read_names: list[str] = []

    def pieces(self, name: str) -> Iterator[np.ndarray]:
        whole = super().pieces(name)
        return (row[None] for tensor in whole for row in tensor) if self.rows else whole

    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {name: tensor.shape for name, tensor in self.tensors.items()}

    def read(self, name: str) -> np.ndarray:
        self.read_names.append(name)
        return self.tensors[name]


def target(*shape: int, transposed: bool = False) -> Target:
    return Target(keras.Variable(np.zeros(shape, np.float32)), transposed=transposed)


@pytest.mark.parametrize("dtype", ["int8", "bool", "complex64"])
def test_integers_are_no_weights(dtype: str) -> None:
    source = Arrays(a=np.ones((2, 3), dtype))
    with pytest.raises(ValueError, match=f"a: expected finite floats, found {dtype}"):
        assign_weights({"a": target(2, 3)}, source)


@pytest.mark.parametrize(
    ("size", "rows", "fits"),
    [
        (32_000, 32_128, True), (250_000, 250_112, True), (250_002, 250_037, True),
        (30_522, 30_522, True), (15_261, 30_522, False), (30_000, 30_522, False),
        (30_523, 30_522, False), (10, 12, True), (5, 12, False),
    ],
)  # fmt: skip
def test_a_vocabulary_has_about_as_many_pieces_as_the_table_has_rows(
    size: int, rows: int, fits: bool
) -> None:
    with nullcontext() if fits else pytest.raises(ValueError, match="folder: .* rows"):
        check_vocabulary(size, rows, folder=Path("folder"), given=None)
    if size < rows:
        check_vocabulary(size, rows, folder=Path("folder"), given=Path("folder/vocab.txt"))


@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.parametrize("large", [1, 2**28])
def test_tensors_and_transposed_tensors(
    monkeypatch: pytest.MonkeyPatch, rows: bool, large: int
) -> None:
    """Large tensors are written in pieces, others are put together and assigned whole."""
    monkeypatch.setattr(weights, "_LARGE", large)
    mapping = {"a": target(2, 3), "b": target(3, 2, transposed=True)}
    values = np.arange(6.0).reshape(2, 3)
    source = Arrays(a=values, b=values)
    source.rows = rows
    assign_weights(mapping, source)
    np.testing.assert_array_equal(mapping["a"].variable, values)
    np.testing.assert_array_equal(mapping["b"].variable, values.T)


def test_nothing_is_read_before_everything_fits() -> None:
    expected = {"a": (2,), "b": (3,), "c": (1,)}
    source = Arrays(a=np.ones(2), b=np.ones(4), d=np.ones(1), e=np.ones(1))
    message = r"Missing: c. Other shapes: b: expected \[3\], found \[4\]. Unknown: d\."
    with pytest.raises(ValueError, match=message):
        check_shapes(expected, source, left_out=lambda name: name == "e")
    assert not source.read_names


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_precision_in_other_dtypes(dtype: str) -> None:
    values = np.array([[0.1, 1.0, 300.5]])
    for stored in ("float32", "float16", "bfloat16"):
        to = Target(keras.Variable(np.zeros((1, 3), dtype), dtype=dtype))
        assign_weights({"a": to}, Arrays(a=values.astype(stored)))
        expected = values.astype(stored).astype(dtype).astype("f")
        np.testing.assert_array_equal(keras.ops.cast(to.variable, "float32"), expected)


def test_nan_is_refused() -> None:
    with pytest.raises(ValueError, match="a: .*found NaN or infinity"):
        assign_weights({"a": target(1)}, Arrays(a=np.array([np.nan])))


def test_every_dtype_is_read_as_it_is_stored(tmp_path: Path) -> None:
    tensors = {
        "a": np.arange(6, dtype=np.float32).reshape(2, 3),
        "b": np.array([1.5, 2.5], np.float16),
        "c": np.array([[0.1]], ml_dtypes.bfloat16),
    }
    save_file(tensors, tmp_path / SAFETENSORS)
    source = SafetensorsSource(tmp_path)
    assert source.shapes() == {"a": (2, 3), "b": (2,), "c": (1, 1)}
    for name, tensor in tensors.items():
        read = source.read(name)
        assert read.dtype == tensor.dtype
        np.testing.assert_array_equal(read, tensor)


@pytest.mark.parametrize("size", [1, 24, 100, 10**6])
def test_pieces_are_some_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(sources, "_PIECE", size)
    tensors = {
        "a": np.arange(77, dtype=np.float32).reshape(11, 7),
        "b": np.arange(5, dtype=ml_dtypes.bfloat16),
    }
    save_file(tensors, tmp_path / SAFETENSORS)
    source = SafetensorsSource(tmp_path)
    for name, tensor in tensors.items():
        pieces = [*source.pieces(name)]
        np.testing.assert_array_equal(np.concatenate(pieces), tensor)
        assert len(pieces) == 1 or max(p.nbytes for p in pieces) <= max(size, tensor[0].nbytes)


def write_index(folder: Path, **files: str) -> None:
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"weight_map": files}), encoding="utf-8"
    )


def test_damaged_folders(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="expected model.safetensors"):
        SafetensorsSource(tmp_path)
    (tmp_path / "model.safetensors.index.json").write_text("[]", encoding="utf-8")
    with pytest.raises(ValueError, match=r"index.json: \$: expected object, received array"):
        SafetensorsSource(tmp_path)
    write_index(tmp_path, a="one.safetensors")
    with pytest.raises(ValueError, match="one.safetensors: .*No such file"):
        SafetensorsSource(tmp_path)
    (tmp_path / "one.safetensors").write_bytes(b"\x00" * 100)
    with pytest.raises(ValueError, match="one.safetensors: is no safetensors file"):
        SafetensorsSource(tmp_path)
    write_index(tmp_path, a="../one.safetensors")
    with pytest.raises(ValueError, match="weight_map.*expected a path inside"):
        SafetensorsSource(tmp_path)


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
        assert tensorflow_prefix(folder / path)
        source = TensorFlowSource(folder / path)
        assert source.shapes()["a"] == (2, 3)
        np.testing.assert_array_equal(source.read("a"), expected)
        assert source.read("b").dtype == ml_dtypes.bfloat16


def test_what_is_none(folder: Path) -> None:
    for path in (folder / "model.ckpt-3", folder / "checkpoint"):
        assert not tensorflow_prefix(path)
        with pytest.raises(ValueError, match="expected a TensorFlow checkpoint"):
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
