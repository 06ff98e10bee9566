"""Rounding of embedding tables."""

from __future__ import annotations

import numpy as np
import pytest

from use_st5.export.embedding_tables import Int8Table


def test_by_hand() -> None:
    table = Int8Table.from_float(np.array([[1.27, -0.634, 0.0], [0, 0, 0]], np.float32))
    codes, scales = (variable.numpy() for variable in table.variables)
    assert codes.tolist() == [[127, -63, 0], [0, 0, 0]]
    np.testing.assert_allclose(scales, [0.01, 1.0], rtol=1e-6)
    np.testing.assert_allclose(table.lookup([[1, 0]])[0, 1, 0], 1.27, rtol=1e-6)


def test_no_entry_moves_by_more_than_half_a_scale() -> None:
    rows = np.random.default_rng(0).normal(size=(50, 32)) * np.geomspace(1e-6, 1e6, 50)[:, None]
    table = Int8Table.from_float(rows.astype(np.float32))
    moved = np.abs(table.lookup(np.arange(50)).numpy() - rows)
    assert (moved <= np.abs(rows).max(axis=1, keepdims=True) / 254 * 1.0001).all()


def test_only_scales_are_trainable() -> None:
    table = Int8Table.from_float(np.ones((2, 2), np.float32))
    assert [variable.trainable for variable in table.variables] == [False, True]
    assert table.trainable_variables[0].shape == (2,)


def test_refuses_what_is_not_finite() -> None:
    with pytest.raises(ValueError, match=r"rows \[1\]"):
        Int8Table.from_float(np.array([[1.0], [np.nan]], np.float32))
