"""The shapes, the parts and the whole of a T5, and Sentence-T5."""

from __future__ import annotations

import dataclasses
import math

import keras
import numpy as np
import pytest

from benchmarks.tpu_arithmetic import encoder_weights
from tests.models.t5 import peer as t5_peer
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


def test_published_sizes() -> None:
    sizes = {name: encoder_weights(config) for name, config in T5_PRESETS.items()}
    assert ENCODER_PARAMETERS.items() <= sizes.items()


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


@pytest.fixture(params=["relu", "gated_gelu"])
def activation(request: pytest.FixtureRequest) -> str:
    return request.param


def random_ids(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Ids longer than the relative bias's last exact distance, padded on the right."""
    rng = np.random.default_rng(seed)
    encoder, decoder = rng.integers(1, 100, (4, 150)), rng.integers(1, 100, (4, 20))
    encoder[1, 60:], encoder[2, 3:], decoder[:, 0] = 0, 0, 0
    return encoder.astype("int32"), decoder.astype("int32")


def test_the_decoder_sees_no_later_token(activation: str) -> None:
    model = T5(t5_peer.config(activation))
    encoder_ids, decoder_ids = random_ids()
    before = np.asarray(model({"encoder_ids": encoder_ids, "decoder_ids": decoder_ids}))
    decoder_ids[:, 10:] = 7
    after = np.asarray(model({"encoder_ids": encoder_ids, "decoder_ids": decoder_ids}))
    np.testing.assert_allclose(before[:, :10], after[:, :10], atol=1e-5)
    assert np.abs(before[:, 10:] - after[:, 10:]).max() > 1e-3


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


EOS = 1


def sentences(*lengths: int, width: int | None = None) -> np.ndarray:
    """Ids of sentences of some lengths, each ending in EOS, padded on the right."""
    rng = np.random.default_rng(0)
    ids = np.zeros((len(lengths), width or max(lengths)), np.int32)
    for row, length in enumerate(lengths):
        ids[row, : length - 1] = rng.integers(2, 100, length - 1)
        ids[row, length - 1] = EOS
    return ids


def test_a_short_vector_is_scaled_as_in_the_published_models() -> None:
    """Their graphs add 1e-6 to the squared length: a vector of length 0.001 gets √½."""
    model = SentenceT5(t5_peer.config("relu"), normalize=False)
    model.build()
    ids = sentences(5)
    long = np.linalg.norm(model(ids))
    model.projection.kernel.assign(model.projection.kernel * (1e-3 / long))
    model.normalize = True
    assert np.linalg.norm(model(ids)) == pytest.approx(0.5**0.5, rel=1e-4)


def test_the_projection_comes_before_the_norm_and_has_no_bias() -> None:
    raw = SentenceT5(t5_peer.config("relu"), projection_dim=None, normalize=False)
    model = SentenceT5(t5_peer.config("relu"), projection_dim=7)
    ids = sentences(6, 9)
    raw.build()
    model.build()
    for ours, other in zip(raw.weights, model.weights, strict=False):
        ours.assign(other)
    projected = np.asarray(raw(ids)) @ np.asarray(model.projection.kernel)
    expected = projected / np.linalg.norm(projected, axis=1, keepdims=True)
    np.testing.assert_allclose(model(ids), expected, atol=1e-5)
    assert model.dimension == 7
    assert raw.dimension == 32
    assert model.count_params() - raw.count_params() == 7 * 32


def test_bfloat16_stays_close_and_projects_in_float32() -> None:
    pooling = "decoder"
    model = SentenceT5(t5_peer.config("gated_gelu"), pooling=pooling, projection_dim=16)
    half = SentenceT5(
        t5_peer.config("gated_gelu"), pooling=pooling, projection_dim=16, dtype="mixed_bfloat16"
    )
    model.build()
    half.build()
    half.set_weights(model.get_weights())
    vectors, rounded = np.asarray(model(sentences(9, 30))), half(sentences(9, 30))
    assert rounded.dtype == "float32"
    assert half.projection.compute_dtype == "float32"
    assert np.sum(vectors * np.asarray(rounded), axis=1).min() > 0.995


def test_refusals() -> None:
    with pytest.raises(ValueError, match="Unknown pooling: 'max'"):
        SentenceT5(t5_peer.config("relu"), pooling="max")
    with pytest.raises(ValueError, match="float16"):
        SentenceT5(t5_peer.config("relu"), dtype="float16")
