"""Initial values, dense layers with adapters, and Transformer blocks."""

from __future__ import annotations

import threading

import keras
import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf

from use_st5.layers.attention import TransformerBlock
from use_st5.layers.lora_dense import LoRADense
from use_st5.layers.random_normal import RandomNormal, without_initial_values
from use_st5.models.t5.model import T5Config, T5Stack


def test_the_numbers_are_those_of_keras() -> None:
    ours = RandomNormal(stddev=0.5, seed=3)((4, 5))
    np.testing.assert_array_equal(ours, keras.initializers.RandomNormal(stddev=0.5, seed=3)((4, 5)))
    assert keras.saving.deserialize_keras_object(
        keras.saving.serialize_keras_object(RandomNormal())
    )


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_nothing_is_drawn_for_a_checkpoint(dtype: str) -> None:
    with without_initial_values():
        stack = T5Stack(T5Config(9, 1, 8, 16, 2, key_value_dim=4), decoder=True, dtype=dtype)
        stack.build((None, None, 8))
    for variable in stack.variables:
        assert variable.dtype == dtype
        norm = variable.path.endswith("scale")
        np.testing.assert_array_equal(variable, np.full(variable.shape, float(norm), "float32"))
    assert np.any(keras.ops.convert_to_numpy(RandomNormal()((9,)))), "only inside"


def test_other_threads_draw_on() -> None:
    drawn = []
    with without_initial_values():
        thread = threading.Thread(target=lambda: drawn.append(RandomNormal()((9,))))
        thread.start()
        thread.join()
    assert np.any(np.asarray(drawn[0]))


def built(dtype: str = "float32", **kwargs: object) -> LoRADense:
    layer = LoRADense(4, dtype=dtype, **kwargs)
    layer.build((None, 3))
    return layer


def adapted(dtype: str = "float32", **kwargs: object) -> LoRADense:
    layer = built(dtype, **kwargs)
    layer.enable_lora(2, lora_alpha=6.0)
    rng = np.random.default_rng(1)
    layer.lora_kernel_a.assign(rng.normal(size=(3, 2)))
    layer.lora_kernel_b.assign(rng.normal(size=(2, 4)))
    return layer


X = np.random.default_rng(0).normal(size=(5, 3)).astype("f")


def test_without_an_adapter_it_is_a_dense_layer() -> None:
    layer = built(activation="tanh")
    expected = np.tanh(X @ np.asarray(layer.kernel) + np.asarray(layer.bias))
    np.testing.assert_allclose(layer(X), expected, atol=1e-6)


def test_adapter_by_hand() -> None:
    layer = adapted(activation="tanh")
    layer.bias.assign([1.0, 2.0, 3.0, 4.0])
    a, b = np.asarray(layer.lora_kernel_a), np.asarray(layer.lora_kernel_b)
    kernel = np.asarray(layer._kernel)
    expected = np.tanh(X @ kernel + 3.0 * (X @ a @ b) + [1.0, 2.0, 3.0, 4.0])
    np.testing.assert_allclose(layer(X), expected, atol=1e-6)


def test_merged_it_gives_the_same_and_has_the_weights_of_a_dense_layer() -> None:
    layer = adapted()
    before = np.asarray(layer(X))
    layer.merge_lora()
    np.testing.assert_allclose(layer(X), before, atol=1e-5)
    assert [weight.name for weight in layer.weights] == ["kernel", "bias"]
    assert layer.get_config() == built(name=layer.name).get_config()
    layer.enable_lora(1)  # it may get another adapter
    np.testing.assert_allclose(layer(X), before, atol=1e-5)


@pytest.mark.parametrize("policy", ["bfloat16", "mixed_bfloat16"])
def test_a_small_change_survives_bfloat16(policy: str) -> None:
    layer = built(policy, use_bias=False)
    layer.kernel.assign(np.ones((3, 4)))
    layer.enable_lora(1)
    layer.lora_kernel_a.assign([[0.02], [-0.02], [0.0]])
    layer.lora_kernel_b.assign(np.full((1, 4), 0.05))
    assert layer.lora_kernel_a.dtype == layer.lora_kernel_b.dtype == "float32"
    x = np.array([[1.0, -1.0, 0.0]], ml_dtypes.bfloat16)
    # Keras adds 0.001 to a weight of 1, whose neighbours in bfloat16 are 0.996 and 1.008.
    assert float(keras.layers.Dense.call(layer, x)[0, 0]) == 0.0
    outputs = layer(x)
    assert keras.backend.standardize_dtype(outputs.dtype) == "bfloat16"
    assert float(outputs[0, 0]) == pytest.approx(0.002, rel=2**-8)


def test_only_the_adapter_has_gradients() -> None:
    layer = adapted(use_bias=False)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(X) ** 2)
    assert [variable.name for variable in layer.trainable_variables] == [
        "lora_kernel_a",
        "lora_kernel_b",
    ]
    gradients = tape.gradient(loss, [variable.value for variable in layer.trainable_variables])
    a, b = np.asarray(layer.lora_kernel_a), np.asarray(layer.lora_kernel_b)
    outputs = 2 * np.asarray(layer(X))
    np.testing.assert_allclose(gradients[0], 3.0 * X.T @ outputs @ b.T, rtol=1e-4)
    np.testing.assert_allclose(gradients[1], 3.0 * (X @ a).T @ outputs, rtol=1e-4)


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
