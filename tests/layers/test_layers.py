"""The layers that the models are built from."""

from __future__ import annotations

import math
import threading

import keras
import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf
from keras import ops
from scipy.special import softmax

from use_st5.layers.attention import MultiHeadAttention, Packing, TransformerBlock
from use_st5.layers.deep_averaging import NGramEmbedding, ResidualFeedForward
from use_st5.layers.lora_dense import LoRADense
from use_st5.layers.pooling import (
    L2Normalize,
    first_token,
    last_token,
    masked_max,
    masked_mean,
    masked_scaled_sum,
    masked_weighted_mean,
)
from use_st5.layers.positions import (
    RelativePositionBias,
    relative_position_bucket,
    rotary_angles,
    rotated,
    sinusoidal_positions,
)
from use_st5.layers.random_normal import RandomNormal, without_initial_values
from use_st5.models.t5.model import T5Config, T5Stack


def test_packing_by_hand() -> None:
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


@pytest.mark.parametrize("shape", [(2, 3), (1, 0), (0, 4)])
def test_nothing_but_padding(shape: tuple[int, int]) -> None:
    packing = Packing.of(np.zeros(shape, bool), num_heads=2)
    packed = packing.pack(np.ones((*shape, 4), "f"))
    assert packed.shape[0] == min(1, shape[0] * shape[1])
    if packed.shape[0]:
        assert ops.shape(packing.unpack(packed)) == (*shape, 4)


@pytest.fixture
def layer() -> MultiHeadAttention:
    layer = MultiHeadAttention(2, 3)
    layer.build((None, None, 4))
    return layer


def test_by_hand(layer: MultiHeadAttention) -> None:
    rng = np.random.default_rng(0)
    x, context = rng.normal(size=(2, 3, 4)).astype("f"), rng.normal(size=(2, 5, 4)).astype("f")
    bias = rng.normal(size=(1, 2, 3, 5)).astype("f")
    q, k, v = (np.asarray(dense.kernel) for dense in (layer.query, layer.key, layer.value))
    heads = []
    for head in (slice(0, 3), slice(3, 6)):
        scores = x @ q[:, head] @ (context @ k[:, head]).transpose(0, 2, 1)
        heads.append(softmax(scores + bias[:, head.start // 3], axis=-1) @ (context @ v[:, head]))
    expected = np.concatenate(heads, axis=-1) @ np.asarray(layer.output_dense.kernel)
    np.testing.assert_allclose(layer(x, context, bias=bias), expected, atol=1e-5)


def test_what_is_masked_does_not_matter(layer: MultiHeadAttention) -> None:
    x = np.random.default_rng(0).normal(size=(1, 6, 4)).astype("f")
    visible = np.array([True, True, True, True, False, False])[None, None, None]
    changed = x.copy()
    changed[:, 4:] = 1e6
    before, after = layer(x, visible=visible)[:, :4], layer(changed, visible=visible)[:, :4]
    np.testing.assert_array_equal(before, after)
    np.testing.assert_allclose(before, layer(x[:, :4]), atol=1e-6)


def test_packed_tokens_attend_as_padded_ones(layer: MultiHeadAttention) -> None:
    x = np.random.default_rng(0).normal(size=(3, 5, 4)).astype("f")
    tokens = np.arange(5) < np.array([[3], [5], [1]])
    bias = np.where(tokens, 0.0, -1e9).astype("f")[:, None, None]
    packing = Packing.of(tokens, num_heads=2)
    packed = layer(packing.pack(x), bias=bias, packing=packing)
    np.testing.assert_allclose(packed, np.asarray(layer(x, bias=bias))[tokens], atol=1e-6)


def test_softmax_is_in_float32_in_half_precision() -> None:
    layer = MultiHeadAttention(1, 1, dtype="mixed_bfloat16")
    layer.build((None, None, 1))
    for dense in (layer.query, layer.key, layer.value, layer.output_dense):
        dense.kernel.assign([[1.0]])
    # A bias that bfloat16 would round to 100 decides between two keys.
    bias = np.array([100.0, 100.2], np.float32)[None, None, None]
    out = layer(np.array([[[0.0], [0.0]]], "f"), np.array([[[0.0], [1.0]]], "f"), bias=bias)
    np.testing.assert_allclose(np.asarray(out, "f")[0, 0, 0], 1 / (1 + np.exp(-0.2)), atol=3e-3)


def test_biases_and_scaled_scores_by_hand() -> None:
    layer = MultiHeadAttention(1, 4, scaled=True, use_bias=True, stddev=0.02)
    layer.build((None, None, 4))
    rng = np.random.default_rng(0)
    for variable in layer.trainable_variables:
        variable.assign(rng.normal(size=variable.shape))
    x = rng.normal(size=(2, 3, 4)).astype("f")
    dense = layer.linear_layers
    q, k, v = (
        x @ np.asarray(dense[role].kernel) + np.asarray(dense[role].bias)
        for role in ("query", "key", "value")
    )
    mixed = softmax(q @ k.transpose(0, 2, 1) / 2, axis=-1) @ v
    expected = mixed @ np.asarray(dense["output"].kernel) + np.asarray(dense["output"].bias)
    np.testing.assert_allclose(layer(x), expected, atol=1e-5)


def _layer(**options: float) -> NGramEmbedding:
    layer = NGramEmbedding(6, 2, **options)
    layer.build()
    layer.embeddings.assign(np.arange(12, dtype="f").reshape(6, 2))
    return layer


def test_mean_by_hand() -> None:
    # Rows of the table: 0:(0,1) 1:(2,3) 2:(4,5) 3:(6,7) 4:(8,9) 5:(10,11).
    means = _layer()(np.array([[2, 5, 0], [3, 0, 0]], np.int32))
    np.testing.assert_allclose(means, [[7, 8], [6, 7]])


def test_padding_changes_nothing_even_where_row_zero_is_large() -> None:
    layer = _layer()
    table = layer.embeddings.numpy()
    table[0] = np.inf
    layer.embeddings.assign(table)
    short = layer(np.array([[2, 5]], np.int32))
    np.testing.assert_array_equal(layer(np.array([[2, 5] + [0] * 60], np.int32)), short)


def test_term_dropout_keeps_the_mean_of_what_is_left_and_acts_in_training_only() -> None:
    layer = _layer(term_dropout=0.5)
    ids = np.tile(np.array([[2, 5]], np.int32), (4000, 1))
    np.testing.assert_allclose(layer(ids), np.tile([[7.0, 8.0]], (4000, 1)))
    rows, counts = np.unique(layer(ids, training=True), axis=0, return_counts=True)
    np.testing.assert_allclose(rows, [[0, 0], [4, 5], [7, 8], [10, 11]])
    assert (np.abs(counts / 4000 - 0.25) < 0.04).all()


def test_config_round_trip() -> None:
    layer = NGramEmbedding.from_config(_layer(term_dropout=0.25).get_config())
    assert (layer.num_embeddings, layer.embedding_dim, layer.term_dropout) == (6, 2, 0.25)


def test_blocks_by_hand() -> None:
    layer = ResidualFeedForward((3, 3, 4, 5))
    x = np.random.default_rng(0).normal(size=(2, 3)).astype("f")
    y = layer(x)
    w = [dense.kernel.numpy() for dense in layer.dense_layers]
    h = np.tanh(np.tanh(x @ w[0]) @ w[1]) + x
    expected = np.tanh(np.tanh(h @ w[2]) @ w[3]) + h @ layer.projections["1"].kernel.numpy()
    np.testing.assert_allclose(y, expected, atol=1e-5)
    assert len(layer.weights) == 5


@pytest.mark.parametrize("hidden_dims", [(), (4,), (4, 4, 4)])
def test_odd_numbers_of_layers_are_refused(hidden_dims: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="an even number"):
        ResidualFeedForward(hidden_dims)


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


def test_rows_have_length_one() -> None:
    x = np.random.default_rng(0).normal(size=(7, 5)).astype("f")
    normalized = L2Normalize()(x)
    np.testing.assert_allclose(np.linalg.norm(normalized, axis=-1), 1.0, atol=1e-6)
    np.testing.assert_allclose(normalized * np.linalg.norm(x, axis=-1, keepdims=True), x, atol=1e-5)


def test_zero_stays_zero_with_a_finite_gradient() -> None:
    x = tf.Variable(np.zeros((1, 3), np.float32))
    with tf.GradientTape() as tape:
        y = L2Normalize()(x)
    assert (y.numpy() == 0).all()
    assert np.isfinite(tape.gradient(y, x)).all()


def test_low_precision_input_gives_float32() -> None:
    assert L2Normalize()(tf.ones((1, 4), tf.bfloat16)).dtype == tf.float32


def test_padding_cannot_leak_even_as_nan() -> None:
    x = np.array([[[1.0, 2.0], [3.0, 6.0], [np.nan, np.inf]], [[1.0, 1.0]] * 3], np.float32)
    mask = np.array([[True, True, False], [False, False, False]])
    np.testing.assert_allclose(masked_mean(x, mask), [[2.0, 4.0], [0.0, 0.0]])
    np.testing.assert_allclose(masked_max(x, mask), [[3.0, 6.0], [0.0, 0.0]])
    np.testing.assert_allclose(masked_max(-x, mask), [[-1.0, -2.0], [0.0, 0.0]])
    np.testing.assert_array_equal(first_token(x), [[1.0, 2.0], [1.0, 1.0]])
    np.testing.assert_array_equal(last_token(x, mask), [[3.0, 6.0], [0.0, 0.0]])
    # 1/3 of the first and 2/3 of the second.
    expected = [[7 / 3, 14 / 3], [0.0, 0.0]]
    np.testing.assert_allclose(masked_weighted_mean(x, mask), expected, rtol=1e-6)


def test_of_equal_numbers_the_first_gets_the_gradient_of_the_largest() -> None:
    x = tf.constant([[[5.0, -1.0], [5.0, 2.0], [9.0, 9.0]], [[1.0, 1.0]] * 3])
    mask = np.array([[True, True, False], [False, False, False]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        loss = tf.reduce_sum(masked_max(x, mask) * [[2.0, 3.0]])
    expected = [[[2.0, 0.0], [0.0, 3.0], [0.0, 0.0]], np.zeros((3, 2))]
    np.testing.assert_array_equal(tape.gradient(loss, x), expected)


def test_the_gradient_of_the_largest_is_finite_where_xla_computes_a_layer_twice() -> None:
    """Compiled without optimizations (conftest.py), the gradient of `ops.max` is NaN here."""
    norm = keras.layers.LayerNormalization()
    norm.build((2, 7, 8))
    mask = np.arange(7) < np.array([[7], [4]])

    @tf.function(jit_compile=True)
    def gradient(x: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(masked_max(norm(tf.tanh(x) * x + tf.exp(-x)), mask))
        return tape.gradient(loss, x)

    assert np.isfinite(gradient(tf.random.stateless_normal((2, 7, 8), [1, 2]))).all()


def test_scaled_sum_by_hand() -> None:
    """Two tokens and four: (1 + 3) / √2, and 4 · 2 / √4."""
    x = np.array([[[1.0], [3.0], [np.nan], [9.0]], [[2.0], [2.0], [2.0], [2.0]]], np.float32)
    mask = np.array([[True, True, False, False], [True] * 4])
    pooled = np.asarray(masked_scaled_sum(x, mask))
    np.testing.assert_allclose(pooled, [[4 / 2**0.5], [4.0]], rtol=1e-6)
    none = np.asarray(masked_scaled_sum(x, np.zeros_like(mask)))
    assert none.tolist() == [[0.0], [0.0]]


@pytest.mark.parametrize("mode", ["mean_sqrt_len_tokens", "weightedmean", "lasttoken"])
def test_those_of_sentence_transformers(mode: str) -> None:
    torch = pytest.importorskip("torch", reason="the extra `peers` is not installed")
    peers = pytest.importorskip("sentence_transformers.sentence_transformer.modules")
    x = np.random.default_rng(0).normal(size=(3, 5, 4)).astype(np.float32)
    mask = np.arange(5) < np.array([[5], [3], [1]])
    given = {"token_embeddings": torch.tensor(x), "attention_mask": torch.tensor(mask).long()}
    expected = peers.Pooling(4, pooling_mode=mode)(given)["sentence_embedding"].numpy()
    ours = {"mean_sqrt_len_tokens": masked_scaled_sum, "weightedmean": masked_weighted_mean}
    np.testing.assert_allclose(ours.get(mode, last_token)(x, mask), expected, atol=1e-6)


# Key minus query → bucket: values of t5x/examples/t5/layers.py (reference facts, section 4.6).
ENCODER = {
    -1000: 15, -127: 15, -64: 14, -32: 12, -16: 10, -12: 9, -9: 8, -8: 8, -7: 7, -1: 1, 0: 0,
    1: 17, 7: 23, 8: 24, 16: 26, 64: 30, 128: 31, 1000: 31,
}  # fmt: skip
DECODER = {5: 0, 0: 0, -1: 1, -15: 15, -24: 19, -32: 21, -64: 26, -113: 31, -1000: 31}


@pytest.mark.parametrize(("golden", "bidirectional"), [(ENCODER, True), (DECODER, False)])
def test_golden_buckets(golden: dict[int, int], bidirectional: bool) -> None:
    positions = keras.ops.convert_to_tensor([*golden], "int32")
    buckets = relative_position_bucket(positions, bidirectional=bidirectional)
    assert dict(zip(golden, np.asarray(buckets).tolist(), strict=True)) == golden


def test_a_bias_depends_on_the_distance_alone() -> None:
    layer = RelativePositionBias(3, bidirectional=True)
    layer.build()
    bias = np.asarray(layer(query_length=40, key_length=50))
    assert bias.shape == (1, 3, 40, 50)
    np.testing.assert_array_equal(bias[..., 1:, 1:], bias[..., :-1, :-1])
    np.testing.assert_array_equal(bias[0, :, 5, 5], np.asarray(layer.table)[0])
    np.testing.assert_array_equal(bias[0, :, 5, 6], np.asarray(layer.table)[17])


def test_the_bias_of_a_half_precision_model_is_not_rounded() -> None:
    layer = RelativePositionBias(2, bidirectional=True, dtype="mixed_bfloat16")
    layer.build()
    layer.table.assign(np.full((32, 2), 1.001, np.float32))
    bias = layer(query_length=2, key_length=2)
    assert bias.dtype == "float32"
    np.testing.assert_allclose(np.asarray(bias), 1.001, rtol=1e-7)


def test_pairs_turn_like_complex_numbers() -> None:
    x = np.random.default_rng(0).normal(size=(1, 2, 5, 6)).astype(np.float32)
    turned = np.asarray(rotated(x, rotary_angles(5, 6, 100.0)))
    rates = 100.0 ** (-np.arange(3) / 3)
    expected = (x[..., :3] + 1j * x[..., 3:]) * np.exp(1j * np.arange(5)[:, None] * rates)
    np.testing.assert_allclose(turned[..., :3], expected.real, atol=1e-5)
    np.testing.assert_allclose(turned[..., 3:], expected.imag, atol=1e-5)


def test_by_hand_of_positions() -> None:
    signal = np.asarray(sinusoidal_positions(3, 4))
    expected = [[math.sin(p), math.sin(p / 1e4), math.cos(p), math.cos(p / 1e4)] for p in range(3)]
    np.testing.assert_allclose(signal, expected, atol=1e-6)
