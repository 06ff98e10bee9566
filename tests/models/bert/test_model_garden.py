from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from tests.models.bert.huggingface_folder import token_vectors
from use_st5.convert.checkpoint import open_checkpoint
from use_st5.models.bert.checkpoint import can_read, read_sentence_bert

networks = pytest.importorskip(
    "official.nlp.modeling.networks", reason="the extra `tfmodels` is not installed"
)

SETTINGS = {
    "vocab_size": 30, "hidden_size": 16, "num_layers": 3, "num_attention_heads": 2,
    "max_sequence_length": 12, "type_vocab_size": 2, "inner_dim": 24,
}  # fmt: skip
SEPARATOR = 4
IDS = np.array([[2, 17, 4, 9, 6, 4], [2, 8, 4, 0, 0, 0], [2, 5, 6, 7, 8, 4]], np.int32)
TYPES = np.array([[0, 0, 0, 1, 1, 1], [0] * 6, [0] * 6], np.int32)
INPUTS = {
    "input_word_ids": tf.constant(IDS),
    "input_mask": tf.constant(IDS != 0, tf.int32),
    "input_type_ids": tf.constant(TYPES),
}


def randomized(model: Any) -> Any:
    """Random weights, the same in each run: how far two passes drift apart depends on them."""
    rng = np.random.default_rng(0)
    for variable in model.variables:
        if variable.dtype.is_floating:
            scales = np.float32("gamma" in variable.name)
            variable.assign(scales + rng.normal(size=variable.shape, scale=0.3).astype("f"))
    return model


def encoder(kind: str) -> Any:
    """An encoder of the Model Garden, called once, so that it has its weights."""
    model = getattr(networks, kind)(**SETTINGS)
    model(INPUTS)
    return randomized(model)


@pytest.mark.parametrize("item", ["model", "encoder"])
@pytest.mark.parametrize("kind", ["BertEncoder", "BertEncoderV2"])
def test_the_encoder_against_its_own_pass(tmp_path: Path, kind: str, item: str) -> None:
    peer = encoder(kind)
    path = tf.train.Checkpoint(**{item: peer}).save(str(tmp_path / "ckpt"))
    checkpoint = open_checkpoint(path)
    assert can_read(checkpoint)
    model = read_sentence_bert(checkpoint, separator=SEPARATOR)
    assert (model.config.num_layers, model.config.num_heads) == (3, 2)
    assert model.head is None
    output = peer(INPUTS)
    outputs = output["sequence_output"] if isinstance(output, dict) else output[0]
    mask = (IDS != 0)[..., None]
    np.testing.assert_allclose(token_vectors(model, IDS) * mask, outputs * mask, atol=1e-5)


# A functional encoder warns that it does not read the positions of the masked words.
@pytest.mark.filterwarnings("ignore:Input dict contained keys")
@pytest.mark.parametrize("items", [True, False])
@pytest.mark.parametrize("kind", ["BertEncoder", "BertEncoderV2"])
def test_the_head_of_its_pretrainer(tmp_path: Path, kind: str, items: bool) -> None:
    from official.modeling.tf_utils import get_activation
    from official.nlp.modeling.models import BertPretrainerV2

    # As in the Model Garden's configuration; tf_keras's "gelu" would be the exact one.
    peer = BertPretrainerV2(encoder(kind), mlm_activation=get_activation("gelu"))
    inputs = {**INPUTS, "masked_lm_positions": tf.constant([[1, 3], [1, 2], [2, 5]])}
    peer(inputs)
    randomized(peer)
    parts = peer.checkpoint_items if items else {"model": peer}
    path = tf.train.Checkpoint(**parts).save(str(tmp_path / "ckpt"))
    model = read_sentence_bert(open_checkpoint(path), separator=SEPARATOR)
    places = inputs["masked_lm_positions"].numpy()
    vectors = np.take_along_axis(np.asarray(token_vectors(model, IDS)), places[..., None], axis=1)
    expected = peer(inputs)["mlm_logits"]
    np.testing.assert_allclose(model.word_logits(vectors), expected, atol=2e-5)


def test_an_optimizer_is_left_out(tmp_path: Path) -> None:
    tf_keras = pytest.importorskip("tf_keras")
    peer = encoder("BertEncoderV2")
    optimizer = tf_keras.optimizers.legacy.Adam()
    pairs = [(tf.zeros_like(variable), variable) for variable in peer.trainable_variables]
    optimizer.apply_gradients(pairs)
    path = tf.train.Checkpoint(model=peer, optimizer=optimizer).save(str(tmp_path / "ckpt"))
    model = read_sentence_bert(open_checkpoint(path), separator=SEPARATOR)
    np.testing.assert_array_equal(model.embedding.embeddings, peer.get_embedding_table())


def test_two_encoders_are_refused(tmp_path: Path) -> None:
    checkpoint = tf.train.Checkpoint(one=encoder("BertEncoder"), two=encoder("BertEncoderV2"))
    path = checkpoint.save(str(tmp_path / "ckpt"))
    with pytest.raises(ValueError, match="expected one BERT, found those"):
        read_sentence_bert(open_checkpoint(path), separator=SEPARATOR)
