from __future__ import annotations

import keras
import numpy as np
import pytest

from use_st5.models.t5.block import T5Block

RNG = np.random.default_rng(0)
X = RNG.standard_normal((2, 5, 12)).astype(np.float32)
CONTEXT = RNG.standard_normal((2, 3, 12)).astype(np.float32)


def block(**options: object) -> T5Block:
    """Two heads that are together narrower than the model."""
    keras.utils.set_random_seed(0)
    made = T5Block(2, 4, 24, **options)
    made.build((None, None, 12))
    return made


def test_each_part_reads_a_norm_and_is_added_to_its_input() -> None:
    layer = block(cross_attention=True)
    outputs = {
        "attention": layer.attention.output_dense,
        "cross": layer.cross.output_dense,
        "feed_forward": layer.feed_forward.outer,
    }
    kernels = {name: dense.kernel.numpy() for name, dense in outputs.items()}
    normed = X / np.sqrt(np.mean(X**2, axis=-1, keepdims=True) + 1e-6)
    expected = {
        "attention": lambda: layer.attention(normed),
        "cross": lambda: layer.cross(normed, CONTEXT),
        "feed_forward": lambda: layer.feed_forward(normed),
    }
    for name in outputs:
        for other, dense in outputs.items():  # the two others add nothing
            dense.kernel.assign(kernels[other] * (other == name))
        added = np.asarray(layer(X, context=CONTEXT)) - X
        assert np.abs(added).max() > 0.1
        np.testing.assert_allclose(added, expected[name](), atol=1e-5)


@pytest.mark.parametrize("activation", ["relu", "gated_gelu"])
def test_a_lone_token_needs_no_scores(activation: str) -> None:
    layer = block(activation=activation, cross_attention=True)
    visible = np.array([[[[True, True, False]]], [[[True, False, False]]]])
    alone = layer.of_one_token(X[:, :1], CONTEXT, visible)
    expected = layer(X[:, :1], context=CONTEXT, context_visible=visible)
    np.testing.assert_allclose(alone, expected, atol=1e-6)


def test_what_is_not_visible_has_no_effect() -> None:
    layer = block()
    visible = np.tril(np.ones((5, 5), bool))
    before = np.asarray(layer(X, visible=visible))
    changed = X.copy()
    changed[:, 3:] += 1.0
    after = np.asarray(layer(changed, visible=visible))
    np.testing.assert_allclose(before[:, :3], after[:, :3], atol=1e-6)
    assert np.abs(before[:, 3:] - after[:, 3:]).max() > 0.1


def test_the_bias_moves_attention() -> None:
    layer = block()
    # So large a bias leaves one key to each query: itself, whatever the scores.
    bias = 1e4 * np.eye(5, dtype=np.float32)
    alone = np.concatenate([layer(X[:, [i]]) for i in range(5)], axis=1)
    np.testing.assert_allclose(layer(X, bias=bias), alone, atol=1e-5)
