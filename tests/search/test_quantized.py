from __future__ import annotations

import numpy as np
import pytest

from use_st5._vectors import unit_rows
from use_st5.search.exact import exact_search
from use_st5.search.quantized import BinaryRows, Int8Rows


@pytest.fixture
def vectors() -> np.ndarray:
    """Rows of length 1, of a dimension that is no multiple of eight, and a row of zeros."""
    rows = unit_rows(np.random.default_rng(0).standard_normal((50, 13))).astype(np.float32)
    rows[7] = 0.0
    return rows


def test_int8_by_hand() -> None:
    codes, scales = Int8Rows.encoded(np.array([[127.0, -127.0, 0.4, 0.6], [0, 0, 0, 0]]))
    assert codes.tolist() == [[127, -127, 0, 1], [0, 0, 0, 0]]
    assert scales.tolist() == [1.0, 0.0]
    assert Int8Rows(codes, 2 * scales)[0:1].tolist() == [[254.0, -254.0, 0.0, 2.0]]


def test_int8_is_off_by_half_a_step_at_most(vectors: np.ndarray) -> None:
    codes, scales = Int8Rows.encoded(vectors)
    rows = Int8Rows(codes, scales)
    assert rows.shape == vectors.shape
    assert rows[0:50].dtype == np.float32
    assert np.all(np.abs(rows[0:50] - vectors) <= 0.5001 * scales[:, None])
    assert np.linalg.norm(rows[0:50], axis=1).max() <= rows.longest


def test_binary_by_hand() -> None:
    codes = BinaryRows.encoded(np.array([[1.0, -1, 0, 2, -3, 1, 1, -1, 5]]))
    assert codes.tolist() == [[0b10010110, 0b10000000]]
    signs = BinaryRows(codes, 9)[0:1]
    assert signs.tolist() == [[1, -1, -1, 1, -1, 1, 1, -1, 1]]


def test_binary_rows_have_one_length(vectors: np.ndarray) -> None:
    rows = BinaryRows(BinaryRows.encoded(vectors), 13)
    assert rows.shape == vectors.shape
    np.testing.assert_array_equal(rows[3:20] > 0, vectors[3:20] > 0)
    np.testing.assert_allclose(np.linalg.norm(rows[0:50], axis=1), rows.longest, rtol=1e-6)


def test_a_search_reads_them_as_what_they_stand_for(vectors: np.ndarray) -> None:
    queries = vectors[:5]
    for rows in (
        Int8Rows(*Int8Rows.encoded(vectors)),
        BinaryRows(BinaryRows.encoded(vectors), 13),
    ):
        found = exact_search(queries, rows, k=4, longest=rows.longest, block=(2, 7))
        whole = exact_search(queries, rows[0:50], k=4)
        np.testing.assert_array_equal(found, whole)
