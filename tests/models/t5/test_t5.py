from __future__ import annotations

import dataclasses

import keras
import numpy as np
import pytest

from tests.models import t5_peer
from use_st5.models.t5.t5 import T5


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


def test_refusals() -> None:
    with pytest.raises(ValueError, match=r"exceed float16's largest number, 65,504.*mixed_float16"):
        T5(t5_peer.config("relu"), dtype="mixed_float16")
    with pytest.raises(ValueError, match="Unknown preset: 't5_tiny'"):
        T5.from_preset("t5_tiny")
