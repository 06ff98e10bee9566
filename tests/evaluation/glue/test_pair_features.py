from __future__ import annotations

import numpy as np
import pytest

from use_st5.evaluation.glue.pair_features import PairFeatures


def test_features_by_hand() -> None:
    features = PairFeatures(np.array([[1.0, -2.0], [0.5, 0.0]]), np.array([[3.0, 1.0], [0.5, 4.0]]))
    assert features.shape == (2, 8)
    assert features[np.array([1, 0])].tolist() == [
        [0.5, 0.0, 0.5, 4.0, 0.0, 4.0, 0.25, 0.0],
        [1.0, -2.0, 3.0, 1.0, 2.0, 3.0, 3.0, -2.0],
    ]
    assert features[:].dtype == np.float32


def test_only_the_rows_asked_for_are_made() -> None:
    # Of all rows they would take 400 GB: u and v are views of one row.
    vectors = np.broadcast_to(np.float32(0.5), (25_000_000, 1024))
    features = PairFeatures(vectors, vectors)
    assert len(features) == 25_000_000
    assert features[np.array([24_999_999])].sum() == 1024 * (0.5 + 0.5 + 0.0 + 0.25)


def test_swapping_a_pair_swaps_the_embeddings_alone() -> None:
    generator = np.random.default_rng(0)
    u, v = generator.normal(size=(2, 5, 3))
    one, other = PairFeatures(u, v)[:], PairFeatures(v, u)[:]
    assert np.array_equal(one[:, :3], other[:, 3:6])
    assert np.array_equal(one[:, 6:], other[:, 6:])


def test_shapes_must_be_equal() -> None:
    with pytest.raises(ValueError, match=r"received \(2, 3\) and \(2, 4\)"):
        PairFeatures(np.zeros((2, 3)), np.zeros((2, 4)))
