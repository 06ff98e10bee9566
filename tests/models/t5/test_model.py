"""The shapes, the parts and the whole of a T5."""

from __future__ import annotations

import dataclasses
import math

import keras
import numpy as np
import pytest

from benchmarks.tpu_arithmetic import encoder_weights
from tests.models import t5_peer
from use_st5.models.t5.model import T5, T5_PRESETS, T5Block, T5Config, T5FeedForward
from use_st5.models.t5.names import weight_shapes
from use_st5.models.t5.sentence_t5 import SentenceT5

# Derived from the published gin files; 110 M, 335 M, 1.24 B, 4.8 B and m-ST5's 5.7 B agree.
ENCODER_PARAMETERS = {
    "t5_small": 35_330_816,
    "t5_base": 109_628_544,
    "t5_large": 334_939_648,
    "t5_3b": 1_240_909_824,
    "t5_11b": 4_864_791_552,
    "t5_1_1_small": 35_332_800,
    "t5_1_1_base": 109_628_544,
    "t5_1_1_large": 341_231_104,
    "t5_1_1_xl": 1_223_527_424,
    "t5_1_1_xxl": 4_762_310_656,
    "mt5_small": 146_940_608,
    "mt5_base": 277_040_256,
    "mt5_large": 564_446_720,
    "mt5_xl": 1_669_958_656,
    "mt5_xxl": 5_655_173_120,
}
# The bytes of a stored number in the token table, and in the other weights.
OURS = {"st5_mini_en": (1, 1), "t5_mini_en": (4, 4)}


def test_published_sizes() -> None:
    sizes = {name: encoder_weights(config) for name, config in T5_PRESETS.items()}
    assert {name: size for name, size in sizes.items() if name not in OURS} == ENCODER_PARAMETERS


@pytest.mark.parametrize(("name", "sizes"), OURS.items())
def test_ours_fits_in_40_megabytes_with_its_projection(name: str, sizes: tuple[int, int]) -> None:
    config = T5_PRESETS[name]
    table = config.vocabulary_size * config.hidden_dim
    rest = encoder_weights(config) - table + 768 * config.hidden_dim
    assert sizes[0] * table + sizes[1] * rest < 40e6


@pytest.mark.parametrize("activation", ["relu", "gated_gelu"])
def test_the_counts_are_those_of_the_built_model(activation: str) -> None:
    config = T5Config(11, 3, 10, 12, 2, 3, activation, num_decoder_layers=1)
    encoder = SentenceT5(config, projection_dim=None)
    whole = T5(config)
    encoder.build()
    whole.build()
    assert encoder.count_params() == encoder_weights(config)
    shapes = weight_shapes(config, decoder=True)
    assert whole.count_params() == sum(map(math.prod, shapes.values()))


def test_plain_by_hand() -> None:
    layer = T5FeedForward(dataclasses.replace(SMALL, hidden_dim=3, intermediate_dim=5))
    x = np.random.default_rng(0).normal(size=(2, 3)).astype("f")
    layer.build((None, 3))
    inner = np.maximum(0, x @ np.asarray(layer.inner.kernel))
    np.testing.assert_allclose(layer(x), inner @ np.asarray(layer.outer.kernel), atol=1e-5)
    assert len(layer.weights) == 2


def test_the_first_of_the_gated_pair_is_activated_by_the_tanh_gelu() -> None:
    layer = T5FeedForward(
        dataclasses.replace(SMALL, hidden_dim=1, intermediate_dim=1, activation="gated_gelu")
    )
    layer.build((None, 1))
    layer.inner.kernel.assign([[2.0]])
    layer.linear.kernel.assign([[3.0]])
    layer.outer.kernel.assign([[1.0]])
    x = 2.0
    gelu = 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    # The exact gelu would differ in the fourth digit.
    np.testing.assert_allclose(layer(np.ones((1, 1), "f")), [[gelu * 3.0]], atol=1e-5)


def test_unknown_activations_are_refused() -> None:
    with pytest.raises(ValueError, match="Unknown activation: 'gelu'"):
        dataclasses.replace(SMALL, activation="gelu")


# Two heads that are together narrower than the model.
SMALL = T5Config(9, 1, 12, 24, 2, key_value_dim=4)
RNG = np.random.default_rng(0)
X = RNG.standard_normal((2, 5, 12)).astype(np.float32)
CONTEXT = RNG.standard_normal((2, 3, 12)).astype(np.float32)


def built_block(**options: object) -> T5Block:
    keras.utils.set_random_seed(0)
    decoder = bool(options.pop("decoder", False))
    made = T5Block(dataclasses.replace(SMALL, **options), decoder=decoder)
    made.build((None, None, 12))
    return made


def test_each_part_reads_a_norm_and_is_added_to_its_input() -> None:
    layer = built_block(decoder=True)
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
    layer = built_block(activation=activation, decoder=True)
    visible = np.array([[[[True, True, False]]], [[[True, False, False]]]])
    alone = layer.of_one_token(X[:, :1], CONTEXT, visible)
    expected = layer(X[:, :1], context=CONTEXT, context_visible=visible)
    np.testing.assert_allclose(alone, expected, atol=1e-6)


def test_what_is_not_visible_has_no_effect() -> None:
    layer = built_block()
    visible = np.tril(np.ones((5, 5), bool))
    before = np.asarray(layer(X, visible=visible))
    changed = X.copy()
    changed[:, 3:] += 1.0
    after = np.asarray(layer(changed, visible=visible))
    np.testing.assert_allclose(before[:, :3], after[:, :3], atol=1e-6)
    assert np.abs(before[:, 3:] - after[:, 3:]).max() > 0.1


def test_the_bias_moves_attention() -> None:
    layer = built_block()
    # With such a large bias, each query sees only its own key, for any scores.
    bias = 1e4 * np.eye(5, dtype=np.float32)
    alone = np.concatenate([layer(X[:, [i]]) for i in range(5)], axis=1)
    np.testing.assert_allclose(layer(X, bias=bias), alone, atol=1e-5)


@pytest.fixture(params=["relu", "gated_gelu"])
def activation(request: pytest.FixtureRequest) -> str:
    return request.param


def random_ids(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Ids longer than the relative bias's last exact distance, padded on the right."""
    rng = np.random.default_rng(seed)
    encoder, decoder = rng.integers(1, 100, (4, 150)), rng.integers(1, 100, (4, 20))
    encoder[1, 60:], encoder[2, 3:], decoder[:, 0] = 0, 0, 0
    return encoder.astype("int32"), decoder.astype("int32")


def test_logits_and_encoder_are_those_of_transformers(activation: str) -> None:
    torch = pytest.importorskip("torch", reason="the extra `peers` is not installed")
    pytest.importorskip("transformers")
    theirs, ours = t5_peer.peer(activation), T5(t5_peer.config(activation))
    ours.build()
    t5_peer.put(ours.embedding.embeddings, theirs.shared.weight)
    t5_peer.copy_stack(ours.encoder, theirs.encoder)
    t5_peer.copy_stack(ours.decoder, theirs.decoder)
    encoder_ids, decoder_ids = random_ids()
    with torch.no_grad():
        expected = theirs(
            input_ids=torch.tensor(encoder_ids).long(),
            attention_mask=torch.tensor(encoder_ids != 0).long(),
            decoder_input_ids=torch.tensor(decoder_ids).long(),
        )
    logits = ours({"encoder_ids": encoder_ids, "decoder_ids": decoder_ids})
    scale = float(expected.logits.abs().max())
    np.testing.assert_allclose(logits, expected.logits.numpy(), atol=1e-6 * max(scale, 10))
    tokens = encoder_ids != 0
    mask = keras.ops.convert_to_tensor(tokens)
    encoded = np.asarray(ours.encoder(ours.embedding(encoder_ids), tokens=mask))
    np.testing.assert_allclose(
        encoded[tokens], expected.encoder_last_hidden_state.numpy()[tokens], atol=1e-5
    )


def test_the_decoder_sees_no_later_token(activation: str) -> None:
    model = T5(t5_peer.config(activation))
    encoder_ids, decoder_ids = random_ids()
    before = np.asarray(model({"encoder_ids": encoder_ids, "decoder_ids": decoder_ids}))
    decoder_ids[:, 10:] = 7
    after = np.asarray(model({"encoder_ids": encoder_ids, "decoder_ids": decoder_ids}))
    np.testing.assert_allclose(before[:, :10], after[:, :10], atol=1e-5)
    assert np.abs(before[:, 10:] - after[:, 10:]).max() > 1e-3


def test_every_weight_learns_and_the_model_is_saved(activation: str, tmp_path: object) -> None:
    import tensorflow as tf

    model = T5(t5_peer.config(activation))
    encoder_ids, decoder_ids = random_ids()
    inputs = {"encoder_ids": encoder_ids, "decoder_ids": decoder_ids}
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(inputs)))
    gradients = tape.gradient(loss, [v.value for v in model.trainable_variables])
    for variable, gradient in zip(model.trainable_variables, gradients, strict=True):
        gradient = tf.convert_to_tensor(gradient)
        assert np.isfinite(gradient).all(), variable.path
        assert np.abs(gradient).max() > 0, variable.path
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(again(inputs), model(inputs))


def test_an_untied_output_layer_is_neither_scaled_nor_the_table() -> None:
    tied = T5(t5_peer.config("gated_gelu"))
    config = dataclasses.replace(tied.config, tied_softmax=False)
    untied = T5(config)
    tied.build()
    untied.build()
    assert untied.count_params() - tied.count_params() == 100 * 32
    for ours, other in zip(untied.weights, tied.weights, strict=False):
        ours.assign(other)
    untied.logits.kernel.assign(np.asarray(tied.embedding.embeddings).T)
    encoder_ids, decoder_ids = random_ids()
    inputs = {"encoder_ids": encoder_ids, "decoder_ids": decoder_ids}
    np.testing.assert_allclose(untied(inputs), tied(inputs), atol=1e-4)


def test_float16_is_refused() -> None:
    with pytest.raises(ValueError, match=r"exceed float16's largest number, 65,504.*mixed_float16"):
        T5(t5_peer.config("relu"), dtype="mixed_float16")
    with pytest.raises(ValueError, match="Unknown preset: 't5_tiny'"):
        SentenceT5.from_preset("t5_tiny")
