from __future__ import annotations

import numpy as np
import pytest

from use_st5.layers.transformer_block import TransformerBlock


def norm(x: np.ndarray) -> np.ndarray:
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-6)


@pytest.fixture
def block() -> TransformerBlock:
    block = TransformerBlock(2, 6)
    block.build((None, None, 4))
    block.inner.bias.assign(np.linspace(-1, 1, 6))
    return block


def test_by_hand_for_a_single_token(block: TransformerBlock) -> None:
    x = np.random.default_rng(0).normal(size=(2, 1, 4)).astype("f")
    attention = block.attention
    kernels = (attention.value.kernel, attention.output_dense.kernel)
    value, output = (np.asarray(kernel) for kernel in kernels)
    y = x + norm(x) @ value @ output
    inner, bias, outer = (np.asarray(w) for w in (block.inner.kernel, block.inner.bias,
                                                  block.outer.kernel))  # fmt: skip
    expected = y + np.maximum(0, norm(y) @ inner + bias) @ outer
    np.testing.assert_allclose(block(x), expected, atol=1e-5)


def test_what_is_not_visible_does_not_matter(block: TransformerBlock) -> None:
    x = np.random.default_rng(0).normal(size=(1, 5, 4)).astype("f")
    visible = np.array([True, True, True, False, False])[None, None, None]
    changed = x.copy()
    changed[:, 3:] += 1e3 * np.random.default_rng(1).normal(size=(1, 2, 4))
    before, after = block(x, visible=visible), block(changed, visible=visible)
    np.testing.assert_array_equal(before[:, :3], after[:, :3])
    np.testing.assert_allclose(before[:, :3], block(x[:, :3]), atol=1e-6)
