"""The similarity functions against NumPy in float64, at ±1 and at zero."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from use_st5 import similarity


def _vectors(rows: int = 50, dim: int = 16, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(rows, dim)).astype("f"), rng.normal(size=(rows, dim)).astype("f")


def _cosine64(u: np.ndarray, v: np.ndarray) -> np.ndarray:
    u, v = u.astype("d"), v.astype("d")
    return (u * v).sum(-1) / np.linalg.norm(u, axis=-1) / np.linalg.norm(v, axis=-1)


def test_cosine_and_angular_match_float64() -> None:
    u, v = _vectors()
    expected = _cosine64(u, v)
    np.testing.assert_allclose(similarity.cosine(u, v), expected, atol=1e-6)
    np.testing.assert_allclose(similarity.angular(u, v), 1 - np.arccos(expected) / np.pi, atol=1e-6)
    np.testing.assert_allclose(similarity.dot(u, v), (u.astype("d") * v).sum(-1), atol=1e-5)


@pytest.mark.parametrize(
    ("degrees", "expected"), [(0, 1.0), (90, 0.5), (180, 0.0), (60, 2 / 3), (0.01, 1 - 0.01 / 180)]
)
def test_angular_of_known_angles(degrees: float, expected: float) -> None:
    angle = np.deg2rad(degrees)
    u = np.array([[1.0, 0.0]], np.float32)
    v = np.array([[np.cos(angle), np.sin(angle)]], np.float32)
    np.testing.assert_allclose(similarity.angular(u, v), [expected], atol=2e-7)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_angular_gradient_is_finite_at_the_ends(sign: float) -> None:
    u, _ = _vectors()
    u = tf.Variable(u)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(similarity.angular(u, sign * tf.stop_gradient(u)))
    gradient = tape.gradient(loss, u)
    assert np.isfinite(gradient).all()


def test_angular_gradient_matches_the_slope() -> None:
    u, v = (x.astype("d") for x in _vectors(rows=1, dim=3))
    variable = tf.Variable(u.astype("f"))
    with tf.GradientTape() as tape:
        loss = similarity.angular(variable, v)[0]
    gradient = tape.gradient(loss, variable).numpy()[0]
    step = 1e-6
    for axis in range(3):
        shift = step * np.eye(3)[axis]
        high, low = (1 - np.arccos(_cosine64(u + s, v)) / np.pi for s in (shift, -shift))
        assert gradient[axis] == pytest.approx((high - low)[0] / (2 * step), abs=1e-4)


def test_zero_vectors_have_no_direction() -> None:
    zero, other = np.zeros((1, 4), np.float32), np.ones((1, 4), np.float32)
    variable = tf.Variable(zero)
    with tf.GradientTape() as tape:
        pair = similarity.angular(variable, zero) + similarity.angular(variable, other)
    assert pair.numpy() == pytest.approx([1.0])
    assert similarity.cosine(zero, other).numpy() == pytest.approx([0.0])
    assert np.isfinite(tape.gradient(pair, variable)).all()


@pytest.mark.parametrize("scale", [1e-20, 1.0, 1e20])
def test_cosine_ignores_scale(scale: float) -> None:
    u, v = _vectors()
    np.testing.assert_allclose(
        similarity.cosine(u * np.float32(scale), v), _cosine64(u, v), atol=1e-6
    )


@pytest.mark.parametrize("metric", ["cosine", "angular", "dot"])
def test_pairwise_is_the_row_wise_function_on_every_pair(metric: str) -> None:
    u, v = _vectors(rows=6)
    matrix = similarity.pairwise(u, v, metric=metric)
    row_wise = similarity.similarity_by_name(metric)(u[:, None], v[None])
    np.testing.assert_allclose(matrix, row_wise, atol=1e-5)


def test_pairwise_angular_of_a_vector_with_itself_is_one() -> None:
    u, _ = _vectors()
    matrix = np.asarray(similarity.pairwise(u, 3 * u, metric="angular"))
    assert matrix.dtype == np.float32
    np.testing.assert_allclose(np.diag(matrix), 1.0, atol=1e-6)


def test_unknown_metric_names_the_known_ones() -> None:
    with pytest.raises(ValueError, match="'euclid'.*'cosine', 'angular', 'dot'"):
        similarity.pairwise(np.ones((1, 2)), np.ones((1, 2)), metric="euclid")
