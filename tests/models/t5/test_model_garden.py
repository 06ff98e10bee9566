from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from tests.models.t5.peer import encoder_outputs, read_t5
from use_st5.convert.checkpoint import open_checkpoint
from use_st5.models.t5.checkpoint import read_sentence_t5

t5 = pytest.importorskip(
    "official.nlp.modeling.models.t5", reason="the extra `tfmodels` is not installed"
)

IDS = np.array([[5, 17, 9, 1, 0, 0], [8, 1, 0, 0, 0, 0], [3, 4, 5, 6, 7, 1]], np.int32)
TARGETS = np.array([[0, 4, 7], [0, 9, 3], [0, 8, 8]], np.int32)


def peer(**changes: Any) -> Any:
    """A model of the Model Garden with random weights, its norms among them."""
    settings = {
        "num_layers": 3, "num_decoder_layers": 2, "d_model": 16, "d_kv": 4, "num_heads": 3,
        "d_ff": 24, "vocab_size": 30, "target_vocab_size": 30, "shared_embedding": True,
    }  # fmt: skip
    model = t5.T5Transformer(t5.T5TransformerParams(**{**settings, **changes}))
    rng = np.random.default_rng(0)
    for variable in model.variables:
        # The same in each run, since how far two passes drift apart depends on the weights.
        norms = np.float32(len(variable.shape) == 1)
        variable.assign(norms + rng.normal(size=variable.shape, scale=0.3).astype("f"))
    return model


@pytest.mark.parametrize("items", [True, False])
@pytest.mark.parametrize("gated", [True, False])
def test_the_whole_model_against_its_own_pass(tmp_path: Path, gated: bool, items: bool) -> None:
    gelu = {"ffn_activations": ("gelu", "linear"), "logits_via_embedding": False}
    model = peer(**gelu) if gated else peer()
    parts = model.checkpoint_items if items else {"model": model}
    checkpoint = open_checkpoint(tf.train.Checkpoint(**parts).save(str(tmp_path / "ckpt")))
    whole = read_t5(checkpoint)
    assert (whole.config.num_layers, whole.config.num_decoder_layers) == (3, 2)
    assert whole.config.tied_softmax != gated
    # Its mask of the targets hides padding, whose id is also the decoder's start: hence the ones.
    expected = model(
        tf.constant(IDS),
        decoder_target_tokens=tf.ones_like(TARGETS),
        decoder_input_tokens=tf.constant(TARGETS),
    )
    ours = whole({"encoder_ids": IDS, "decoder_ids": TARGETS})
    np.testing.assert_allclose(ours, expected["logits"], atol=1e-5, rtol=1e-5)
    mask = (IDS != 0)[..., None]
    mean = (expected["encoded"].numpy() * mask).sum(1) / mask.sum(1)
    np.testing.assert_allclose(read_sentence_t5(checkpoint)(IDS), mean, atol=1e-5)


def test_an_optimizer_is_left_out(tmp_path: Path) -> None:
    tf_keras = pytest.importorskip("tf_keras")
    model = peer()
    for optimizer in (tf_keras.optimizers.Adam(), tf_keras.optimizers.legacy.Adam()):
        pairs = [(tf.zeros_like(variable), variable) for variable in model.trainable_variables]
        optimizer.apply_gradients(pairs)
        checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer)
        path = checkpoint.save(str(tmp_path / "ckpt"))
        assert any("optimizer" in name.lower() for name, _ in tf.train.list_variables(path))
        ours = encoder_outputs(open_checkpoint(path), IDS)
        encoded = model.encode(tf.constant(IDS))
        np.testing.assert_allclose(ours[2], encoded[2], atol=1e-5)


def test_what_our_t5_has_not(tmp_path: Path) -> None:
    def save(**changes: Any) -> Any:
        checkpoint = tf.train.Checkpoint(model=peer(**changes))
        return open_checkpoint(checkpoint.save(str(tmp_path / "ckpt")))

    two_tables = save(shared_embedding=False)
    read_sentence_t5(two_tables)
    with pytest.raises(ValueError, match=r"Unknown: decoder/target_embed/embeddings\."):
        read_t5(two_tables)
    with pytest.raises(ValueError, match="expected the matrices of a T5: encoder/rel"):
        read_t5(save(use_shared_relative_position_bias=False))
    other = tf.train.Checkpoint(a=tf.Variable(1.0)).save(str(tmp_path / "other"))
    with pytest.raises(ValueError, match="expected a T5 of .* the Model Garden"):
        read_t5(open_checkpoint(other))
