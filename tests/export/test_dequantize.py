"""From int8 storage back to float32."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from use_st5.export.dequantize import dequantize

TEXTS = ["the cat", "", "how old are you", "river bank zzz"]


def test_same_vectors_whole_table_trainable(toy: Any, tmp_path: Path) -> None:
    manifest = dequantize(toy.folders["int8"], tmp_path / "model")
    assert manifest.storage == "float32"
    assert manifest.trainable_parameters == manifest.parameters == toy.model.count_params()
    assert manifest.metadata == {"languages": ["en"]}
    assert (tmp_path / "model" / "README.md").read_text() == "# Toy\n"
    before = tf.saved_model.load(str(toy.folders["int8"]))
    after = tf.saved_model.load(str(tmp_path / "model"))
    np.testing.assert_allclose(after(TEXTS), before(TEXTS), atol=1e-6)
    ids = after.preprocess(TEXTS)
    np.testing.assert_allclose(after.encode_ids(ids), before.encode_ids(ids), atol=1e-6)
    assert len(after.variables) == len(toy.model.variables)
    assert manifest.max_length == toy.max_length
    assert hasattr(after, "token_counts") == (toy.max_length is not None)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(after(TEXTS, training=True)[:, :3])
    for gradient in tape.gradient(loss, after.trainable_variables):
        assert np.isfinite(tf.convert_to_tensor(gradient)).all()


def test_keeps_what_was_fine_tuned(toy: Any, tmp_path: Path) -> None:
    loaded = tf.saved_model.load(str(toy.folders["int8"]))
    loaded.table_scales.assign(loaded.table_scales * tf.range(1.0, toy.rows + 1.0))
    loaded.trainable_variables[1].assign_add(tf.ones_like(loaded.trainable_variables[1]) / 8)
    expected = loaded(TEXTS)
    tf.saved_model.save(loaded, str(tmp_path / "tuned"), signatures=loaded.signatures)
    manifest = (toy.folders["int8"] / "use_st5.json").read_bytes()
    (tmp_path / "tuned" / "use_st5.json").write_bytes(manifest)
    dequantize(tmp_path / "tuned", tmp_path / "model")
    after = tf.saved_model.load(str(tmp_path / "model"))
    np.testing.assert_allclose(after(TEXTS), expected, atol=1e-6)


def test_refuses_a_table_that_is_float32(toy: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="found storage float32"):
        dequantize(toy.folders["float32"], tmp_path / "model")
