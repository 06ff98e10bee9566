from __future__ import annotations

import numpy as np
import pytest
from keras import ops

from use_st5.layers.packing import Packing


def test_by_hand() -> None:
    tokens = np.array([[True, True, False], [True, False, False]])
    packing = Packing.of(tokens, num_heads=2)
    x = np.arange(12, dtype="f").reshape(2, 3, 2)
    packed = np.asarray(packing.pack(x))
    np.testing.assert_array_equal(packed, [[0, 1], [2, 3], [6, 7]])
    np.testing.assert_array_equal(np.asarray(packing.unpack(packed))[tokens], packed)
    heads = np.asarray(packing.split_heads(packed, width=1))
    assert heads.shape == (2, 2, 3, 1)
    np.testing.assert_array_equal(heads[0, :, :2, 0], [[0, 2], [1, 3]])
    np.testing.assert_array_equal(heads[1, :, 0, 0], [6, 7])


@pytest.mark.parametrize("seed", range(3))
def test_heads_come_back_as_they_went(seed: int) -> None:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 6, size=4)
    tokens = np.arange(5) < lengths[:, None]
    tokens[0, 0] = True
    packing = Packing.of(tokens, num_heads=3)
    packed = rng.normal(size=(tokens.sum(), 6)).astype("f")
    there = packing.split_heads(packed, width=2)
    assert tuple(there.shape) == (4, 3, 5, 2)
    np.testing.assert_array_equal(packing.join_heads(there), packed)


@pytest.mark.parametrize("shape", [(2, 3), (1, 0), (0, 4)])
def test_nothing_but_padding(shape: tuple[int, int]) -> None:
    packing = Packing.of(np.zeros(shape, bool), num_heads=2)
    packed = packing.pack(np.ones((*shape, 4), "f"))
    assert packed.shape[0] == min(1, shape[0] * shape[1])
    if packed.shape[0]:
        assert ops.shape(packing.unpack(packed)) == (*shape, 4)
