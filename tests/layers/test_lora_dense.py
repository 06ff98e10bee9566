from __future__ import annotations

import keras
import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf

from use_st5.layers.lora_dense import LoRADense


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


def test_what_keras_computes() -> None:
    layer = adapted()
    np.testing.assert_allclose(layer(X), keras.layers.Dense.call(layer, X), atol=1e-5)


def test_merged_it_gives_the_same_and_has_the_weights_of_a_dense_layer() -> None:
    layer = adapted()
    before = np.asarray(layer(X))
    layer.merge_lora()
    np.testing.assert_allclose(layer(X), before, atol=1e-5)
    assert [weight.name for weight in layer.weights] == ["kernel", "bias"]
    assert layer.get_config() == built(name=layer.name).get_config()
    with pytest.raises(ValueError, match="has none"):
        layer.merge_lora()
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
