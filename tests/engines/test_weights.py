"""The variables of a SavedModel without TensorFlow: by key, by name, and damaged."""

from __future__ import annotations

import random
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from tests.toy_encoders import Toy
from use_st5.engines.weights import Bundle, Table, TableRows, Weights

_VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"


def check_same(folder: Path) -> None:
    bundle = Bundle(folder)
    reader = tf.train.load_checkpoint(str(folder / "variables" / "variables"))
    keys = {key.removesuffix(_VALUE) for key in reader.get_variable_to_shape_map() if _VALUE in key}
    assert keys == {*bundle.names}
    for key in keys:
        found, expected = bundle.array(key), reader.get_tensor(key + _VALUE)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


def test_all_variables(toy: Toy) -> None:
    for folder in toy.folders.values():
        check_same(folder)


def test_other_types_of_numbers_and_odd_shapes(tmp_path: Path) -> None:
    root = tf.train.Checkpoint()
    values = [np.array(7, np.int64), np.zeros((0, 3), np.float32), np.ones((2, 1, 2), np.float64)]
    root.all = [tf.Variable(value) for value in values]
    root.half = tf.Variable(tf.constant([1.5, -2.0, 3e38], tf.bfloat16))
    root.many = [tf.Variable(float(number)) for number in range(300)]  # several blocks of an index
    tf.saved_model.save(root, str(tmp_path))
    bundle = Bundle(tmp_path)
    for number, value in enumerate(values):
        np.testing.assert_array_equal(bundle.array(f"all/{number}"), value)
    np.testing.assert_array_equal(bundle.array("half"), root.half.numpy().astype(np.float32))
    assert [bundle.array(f"many/{number}") for number in range(300)] == [*range(300)]
    with pytest.raises(ValueError, match="holds no 'all/3'"):
        bundle.array("all/3")


@pytest.fixture
def copied(toy_use_dan: Toy, tmp_path: Path) -> Path:
    return shutil.copytree(toy_use_dan.folders["int8"], tmp_path / "model")


def _read_all(folder: Path) -> list[np.ndarray]:
    bundle = Bundle(folder)
    return [np.array(bundle.array(key)) for key in bundle.names]


def test_a_damaged_index_is_refused(copied: Path) -> None:
    """A checksum detects any changed byte outside the footer, unless the byte is unused."""
    index = copied / "variables" / "variables.index"
    content, before = index.read_bytes(), _read_all(copied)
    draw = random.Random(0)
    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= 1 << draw.randrange(8)
        index.write_bytes(damaged)
        try:
            found = _read_all(copied)
        except ValueError as error:
            assert "again" in str(error)
            continue
        assert all(map(np.array_equal, found, before)), place


def test_a_damaged_small_variable_is_refused(copied: Path) -> None:
    """The bias of positions is read at each load; large variables are compared with `sha256`."""
    path = copied / "variables" / "variables.data-00000-of-00001"
    content = bytearray(path.read_bytes())
    content[0] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"another checksum than .*Copy or export the model again"):
        _read_all(copied)


@pytest.mark.parametrize("length", [0, 1, 47, 48, 200])
def test_an_index_that_is_cut_short_is_refused(copied: Path, length: int) -> None:
    index = copied / "variables" / "variables.index"
    index.write_bytes(index.read_bytes()[:length])
    with pytest.raises(ValueError, match="index.*again"):
        Bundle(copied)


def test_missing_files_and_short_data_are_refused(copied: Path) -> None:
    data = copied / "variables" / "variables.data-00000-of-00001"
    content = data.read_bytes()
    data.write_bytes(content[:100])
    with pytest.raises(ValueError, match="which has 100"):
        _read_all(copied)
    data.unlink()
    with pytest.raises(ValueError, match="which has 0"):
        _read_all(copied)
    (copied / "variables" / "variables.index").unlink()
    with pytest.raises(FileNotFoundError, match="variables.index"):
        Bundle(copied)


def test_a_table_gives_rows_and_scales() -> None:
    codes = np.array([[1, -2], [3, 4], [127, 0]], np.int8)
    read = TableRows(Table(codes, np.array([0.5, 2, 1], np.float32)), 4)
    for ids, expected in ([2, 0, 2], [[127, 0], [0.5, -1], [127, 0]]), ([1], [[6, 8]]):
        rows, scales = read(np.array(ids))
        np.testing.assert_array_equal(rows * scales[:, None], expected)
    rows, scales = TableRows(Table(codes.astype(np.float32)), 4)(np.array([1]))
    np.testing.assert_array_equal(rows * scales[:, None], [[3, 4]])


def test_threads_do_not_share_the_arrays_of_rows() -> None:
    read = TableRows(Table(np.array([[1.0], [2.0]], np.float32)), 2)
    rows, _ = read(np.array([0, 0]))
    with ThreadPoolExecutor(1) as other:
        found, _ = other.submit(read, np.array([1, 1])).result()
    assert (rows.tolist(), found.tolist()) == ([[1], [1]], [[2], [2]])


def test_weights_are_the_models(toy_use_dan: Toy) -> None:
    for precision, folder in toy_use_dan.folders.items():
        weight = Weights(folder)
        rows, scales = TableRows(weight.table(), toy_use_dan.rows)(np.arange(toy_use_dan.rows))
        expected = toy_use_dan.model.embedding.embeddings.numpy()
        error = 0 if precision == "float32" else np.abs(expected).max() / 254
        np.testing.assert_allclose(rows * scales[:, None], expected, atol=error + 1e-9)
        kernel = toy_use_dan.model.network.layers[0].dense_layers[0].kernel.numpy()
        np.testing.assert_array_equal(
            weight("network/feed_forward/hidden_0/kernel", (8, 12)), kernel
        )


def test_what_does_not_fit_is_refused(toy_use_dan: Toy) -> None:
    folder = toy_use_dan.folders["int8"]
    weight = Weights(folder)
    with pytest.raises(ValueError, match=r"the shape \[8, 12\], not \[8, 13\]"):
        weight("network/feed_forward/hidden_0/kernel", (8, 13))
    with pytest.raises(ValueError, match="no weight network/other"):
        weight("network/other", (8, 13))


def test_what_is_not_finite_is_refused(tmp_path: Path) -> None:
    root = tf.train.Checkpoint()
    root.table = tf.Variable([[1.0, np.nan]])
    tf.saved_model.save(root, str(tmp_path))
    with pytest.raises(ValueError, match="embedding holds NaN"):
        Weights(tmp_path).table()
