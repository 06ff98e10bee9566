"""A sentence encoder that is a SavedModel of two numbers."""

from __future__ import annotations

import pytest
import tensorflow as tf


@pytest.fixture(scope="package")
def letters(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Folder of a model that gives `[length, begins with "b"]`, times two trainable weights."""
    root = tf.train.Checkpoint()
    scale = tf.Variable([1.0, 1.0], name="scale")

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def call(text: tf.Tensor) -> tf.Tensor:
        length = tf.cast(tf.strings.length(text), tf.float32)
        first = tf.cast(tf.strings.substr(text, 0, 1) == "b", tf.float32)
        return tf.stack([length, first], axis=1) * scale

    root.__call__ = call
    root.variables = root.trainable_variables = [scale]
    path = tmp_path_factory.mktemp("models") / "letters"
    tf.saved_model.save(root, str(path))
    return str(path)
