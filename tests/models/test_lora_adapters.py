from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from tests.models.test_lora import IDS, moved, sentence_t5
from use_st5.models.lora import apply_lora
from use_st5.tokenizers.sentencepiece_tokenizer import SentencePieceTokenizer
from use_st5.trainable_encoder import TrainableEncoder


@pytest.mark.parametrize("targets", ["query_value", "all_linear"])
def test_merged_vectors_are_the_same_and_the_model_is_as_any_other(targets: str) -> None:
    model = sentence_t5()
    base = np.asarray(model(IDS))
    trainable = [variable.path for variable in model.trainable_variables]
    adapters = moved(apply_lora(model, targets=targets))
    adapted = np.asarray(model(IDS))
    adapters.merge()
    np.testing.assert_allclose(model(IDS), adapted, atol=1e-5)
    assert np.abs(adapted - base).max() > 1e-2
    assert [variable.path for variable in model.trainable_variables] == trainable
    assert len(model.variables) == len(sentence_t5().variables)
    other = sentence_t5()
    other.set_weights(model.get_weights())
    np.testing.assert_array_equal(other(IDS), model(IDS))


def test_what_was_frozen_before_stays_so() -> None:
    model = sentence_t5()
    model.embedding.trainable = False
    trainable = len(model.trainable_variables)
    apply_lora(model).merge()
    assert len(model.trainable_variables) == trainable


def test_after_merging_there_is_nothing_to_save_or_merge(tmp_path: Path) -> None:
    adapters = apply_lora(sentence_t5())
    adapters.merge()
    assert not adapters.tensors
    with pytest.raises(ValueError, match="were already merged"):
        adapters.merge()
    with pytest.raises(ValueError, match="were already merged"):
        adapters.save(tmp_path / "adapters.safetensors")
    assert not [*tmp_path.iterdir()]


def test_merged_model_as_a_saved_model(tmp_path: Path) -> None:
    # T5's own vocabulary on a table of 60 rows: these texts have small ids.
    model = sentence_t5()
    moved(apply_lora(model, targets="all_linear")).merge()
    tokenizer = SentencePieceTokenizer()
    texts = tf.constant(["the", "of the, to a"])
    ids = tokenizer.padded(texts)
    assert int(tf.reduce_max(ids)) < 60
    TrainableEncoder(model, tokenizer, name="merged").export(tmp_path / "model")
    loaded = tf.saved_model.load(tmp_path / "model")
    np.testing.assert_allclose(loaded(texts), model(ids), atol=1e-5)
    assert len(loaded.trainable_variables) == len(model.trainable_variables)
    assert not [v.name for v in loaded.variables if "lora" in v.name]
