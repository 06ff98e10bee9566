"""Weights by name: missing weights, other shapes, NaN and infinity are refused."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from tests.toy_encoders import Toy
from use_st5.engines.weights import Table, TableRows, Weights


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
    with pytest.raises(ValueError, match=r"of the shape \[8, 13\], found \[8, 12\]"):
        weight("network/feed_forward/hidden_0/kernel", (8, 13))
    with pytest.raises(ValueError, match="a weight network/other, found none"):
        weight("network/other", (8, 13))


def test_what_is_not_finite_is_refused(tmp_path: Path) -> None:
    root = tf.train.Checkpoint()
    root.table = tf.Variable([[1.0, np.nan]])
    tf.saved_model.save(root, str(tmp_path))
    with pytest.raises(ValueError, match="finite weights, embedding holds NaN"):
        Weights(tmp_path).table()
