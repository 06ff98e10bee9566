from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial import distance

from use_st5.encode.similarity import angular, cosine, dot, pairwise, similarity_by_name, unit_rows

U = np.random.default_rng(0).normal(size=(50, 7)).astype(np.float32)
V = np.random.default_rng(1).normal(size=(50, 7)).astype(np.float32)


def test_against_scipy() -> None:
    wide = zip(U.astype(np.float64), V.astype(np.float64), strict=True)
    expected = np.array([1 - distance.cosine(u, v) for u, v in wide])
    np.testing.assert_allclose(cosine(U, V), expected, atol=1e-14)
    np.testing.assert_allclose(angular(U, V), 1 - np.arccos(expected) / np.pi, atol=1e-14)
    np.testing.assert_allclose(dot(U, V), np.einsum("nd,nd->n", U, V, dtype=np.float64))


def test_lengths_change_nothing_however_extreme() -> None:
    scales = np.geomspace(1e-37, 1e37, len(U))[:, None]
    np.testing.assert_allclose(cosine(U.astype(np.float64) * scales, V), cosine(U, V), atol=1e-14)
    tiny = unit_rows(np.array([[3e-200, 4e-200], [3e200, 4e200]]))
    np.testing.assert_allclose(tiny, [[0.6, 0.8], [0.6, 0.8]])


def test_angles_keep_their_digits_near_parallel_and_opposite() -> None:
    angle = 1e-9
    u = np.array([[1.0, 0.0], [1.0, 0.0]])
    v = np.array([[np.cos(angle), np.sin(angle)], [-np.cos(angle), np.sin(angle)]])
    np.testing.assert_allclose(np.pi * (1 - angular(u, v)), [angle, np.pi - angle], rtol=1e-6)
    assert (angular(U, U) == 1).all()
    assert (cosine(U, U) <= 1).all()


@pytest.mark.parametrize(
    ("degrees", "expected"), [(0, 1.0), (90, 0.5), (180, 0.0), (60, 2 / 3), (0.01, 1 - 0.01 / 180)]
)
def test_angular_of_known_angles(degrees: float, expected: float) -> None:
    angle = np.deg2rad(degrees)
    u, v = np.array([[1.0, 0.0]]), np.array([[np.cos(angle), np.sin(angle)]])
    np.testing.assert_allclose(angular(u, v), [expected], atol=1e-12)


@pytest.mark.parametrize("metric", ["cosine", "angular", "dot"])
def test_pairwise_is_the_row_wise_function_on_every_pair(metric: str) -> None:
    matrix = pairwise(U[:6], V[:4], metric=metric)
    assert (matrix.dtype, matrix.shape) == (np.float32, (6, 4))
    for row, expected in zip(U[:6], matrix, strict=True):
        found = similarity_by_name(metric)(np.tile(row, (4, 1)), V[:4])
        np.testing.assert_allclose(found, expected, atol=1e-6)


def test_pairwise_angular_of_a_vector_with_itself_is_one() -> None:
    np.testing.assert_allclose(np.diag(pairwise(U, 3 * U, metric="angular")), 1.0, atol=1e-6)


def test_a_zero_vector_has_no_direction() -> None:
    zero, one = np.zeros((3, 2)), np.ones((3, 2))
    one[2] = 0
    assert (unit_rows(zero) == 0).all()
    assert cosine(zero, one).tolist() == [0, 0, 0]
    assert angular(zero, one).tolist() == [0.5, 0.5, 0.5]


def test_by_name() -> None:
    assert similarity_by_name("angular") is angular
    with pytest.raises(ValueError, match="'euclidean'. Expected one of .cosine."):
        similarity_by_name("euclidean")
