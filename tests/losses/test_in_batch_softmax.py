from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from use_st5.losses.in_batch_softmax import equal_ids


@pytest.mark.parametrize("jit_compile", [False, True])
def test_equal_rows_are_those_of_equal_ids_whatever_their_padding(jit_compile: bool) -> None:
    rng = np.random.default_rng(0)
    short = rng.integers(1, 3, (64, 5)).astype(np.int32)  # many rows are equal
    long = np.pad(rng.integers(1, 3, (48, 5)).astype(np.int32), [(0, 0), (0, 3)])
    long[7, 6] = 1
    compare = tf.function(equal_ids, jit_compile=jit_compile)
    padded = np.pad(short, [(0, 0), (0, 3)])
    expected = (padded[:, None] == long[None]).all(axis=-1)
    assert expected.any()
    np.testing.assert_array_equal(compare(tf.constant(short), tf.constant(long)), expected)


def test_rows_of_a_width_that_is_known_late_have_the_same_keys() -> None:
    rng = np.random.default_rng(0)
    ids = rng.integers(1, 3, (64, 4)).astype(np.int32)
    late = tf.function(equal_ids, input_signature=[tf.TensorSpec([None, None], tf.int32)] * 2)
    np.testing.assert_array_equal(late(ids, np.pad(ids, [(0, 0), (0, 3)])), equal_ids(ids, ids))
    longest = np.pad(ids, [(0, 0), (9000, 0)])
    np.testing.assert_array_equal(late(longest, longest), equal_ids(longest, longest))
    np.testing.assert_array_equal(equal_ids(longest, longest), equal_ids(ids, ids))


def test_ids_of_a_large_vocabulary_in_another_order_are_not_equal() -> None:
    a = np.array([[250_111, 1, 2], [1, 250_111, 2]], np.int32)
    np.testing.assert_array_equal(equal_ids(a, a), np.eye(2, dtype=bool))
