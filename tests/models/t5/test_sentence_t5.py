from __future__ import annotations

import math

import keras
import numpy as np
import pytest

from tests.models import t5_peer
from use_st5.models.t5.model import T5_PRESETS
from use_st5.models.t5.names import weight_shapes
from use_st5.models.t5.sentence_t5 import POOLINGS, SentenceT5

EOS = 1


def sentences(*lengths: int, width: int | None = None) -> np.ndarray:
    """Ids of sentences of some lengths, each ending in EOS, padded on the right."""
    rng = np.random.default_rng(0)
    ids = np.zeros((len(lengths), width or max(lengths)), np.int32)
    for row, length in enumerate(lengths):
        ids[row, : length - 1] = rng.integers(2, 100, length - 1)
        ids[row, length - 1] = EOS
    return ids


@pytest.fixture(params=["relu", "gated_gelu"])
def activation(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(params=POOLINGS)
def pooling(request: pytest.FixtureRequest) -> str:
    return request.param


def test_raw_vectors_are_those_of_transformers(activation: str, pooling: str) -> None:
    torch = pytest.importorskip("torch", reason="the extra `peers` is not installed")
    pytest.importorskip("transformers")
    theirs = t5_peer.peer(activation)
    ours = SentenceT5(
        t5_peer.config(activation), pooling=pooling, projection_dim=None, normalize=False
    )
    ours.build()
    t5_peer.put(ours.embedding.embeddings, theirs.shared.weight)
    t5_peer.copy_stack(ours.encoder, theirs.encoder)
    if ours.decoder is not None:
        t5_peer.copy_stack(ours.decoder, theirs.decoder)
    ids = sentences(9, 40, 2, 140)
    with torch.no_grad():
        out = theirs(
            input_ids=torch.tensor(ids).long(),
            attention_mask=torch.tensor(ids != 0).long(),
            decoder_input_ids=torch.zeros(len(ids), 1).long(),
            output_hidden_states=True,
        )
    encoded, mask = out.encoder_last_hidden_state.numpy(), (ids != 0)[..., None]
    expected = {
        "mean": (encoded * mask).sum(1) / mask.sum(1),
        "first": encoded[:, 0],
        "decoder": out.decoder_hidden_states[-1].numpy()[:, 0],
    }[pooling]
    np.testing.assert_allclose(ours(ids), expected, atol=1e-5)


def test_one_step_of_the_decoder_is_the_decoder(activation: str) -> None:
    model = SentenceT5(t5_peer.config(activation), pooling="decoder")
    model.build()
    context = np.random.default_rng(0).normal(size=(3, 5, 32)).astype("f")
    mask = np.array([[True] * 5, [True] * 2 + [False] * 3, [True] + [False] * 4])
    x = np.random.default_rng(1).normal(size=(3, 1, 32)).astype("f")
    np.testing.assert_allclose(
        model.decoder.of_one_token(x, context, mask),
        model.decoder(x, context=context, context_tokens=mask),
        atol=5e-6,
    )


def test_a_short_vector_is_scaled_as_in_the_published_models() -> None:
    """Their graphs add 1e-6 to the squared length: a vector of length 0.001 gets √½."""
    model = SentenceT5(t5_peer.config("relu"), normalize=False)
    model.build()
    ids = sentences(5)
    long = np.linalg.norm(model(ids))
    model.projection.kernel.assign(model.projection.kernel * (1e-3 / long))
    model.normalize = True
    assert np.linalg.norm(model(ids)) == pytest.approx(0.5**0.5, rel=1e-4)


def test_padding_batch_and_order_do_not_change_a_vector(pooling: str) -> None:
    model = SentenceT5(t5_peer.config("relu"), pooling=pooling)
    vectors = np.asarray(model(sentences(3, 17, 8, width=64)))
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)
    ids = sentences(3, 17, 8, width=17)
    np.testing.assert_allclose(model(ids), vectors, atol=1e-5)
    np.testing.assert_allclose(model(ids[::-1]), vectors[::-1], atol=1e-5)
    np.testing.assert_allclose(model(ids[1:2]), vectors[1:2], atol=1e-5)


def test_the_mean_includes_the_end_of_the_sentence() -> None:
    model = SentenceT5(t5_peer.config("relu"), projection_dim=None, normalize=False)
    model.build()
    ids = sentences(5)
    mask = keras.ops.convert_to_tensor(ids != 0)
    encoded = np.asarray(model.encoder(model.embedding(ids), tokens=mask))
    np.testing.assert_allclose(model(ids), encoded.mean(1), atol=1e-5)
    assert np.abs(np.asarray(model(ids)) - encoded[:, :4].mean(1)).max() > 1e-3


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


def test_only_the_decoder_pooling_has_a_decoder() -> None:
    config = t5_peer.config("relu")
    projection = 32 * 768
    for pooling in ("mean", "first", "decoder"):
        model = SentenceT5(config, pooling=pooling)
        model.build()
        shapes = weight_shapes(config, decoder=pooling == "decoder")
        assert model.count_params() == sum(map(math.prod, shapes.values())) + projection


def test_bfloat16_stays_close_and_projects_in_float32(pooling: str) -> None:
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


def test_a_preset_keeps_its_shape_through_a_configuration() -> None:
    model = SentenceT5.from_preset("t5_small", pooling="first", num_layers=1)
    again = SentenceT5.from_config(model.get_config())
    assert again.config == model.config
    assert (again.config.hidden_dim, again.config.num_layers) == (512, 1)
    assert T5_PRESETS["t5_small"].num_layers == 6
