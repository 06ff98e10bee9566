"""A Sentence-T5 as a SavedModel: strings in, vectors out, tokenizer and pooling inside."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")

import use_st5  # noqa: E402
from use_st5.export.saved_model import export_saved_model  # noqa: E402
from use_st5.models.sentence_t5 import SentenceT5  # noqa: E402
from use_st5.models.t5_config import T5Config  # noqa: E402
from use_st5.text.sentencepiece_vectorizer import SentencePieceVectorizer  # noqa: E402

TEXTS = ["How old are you?", "", "What is your age? " * 50, "😀", "naïve café"]
TINY = T5Config(32_128, 2, 16, 32, 2, 8, "gated_gelu", tied_softmax=False)


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, np.ndarray]:
    """The folder of a tiny model, and what the model gives for the texts."""
    model, vectorizer = SentenceT5(TINY, projection_dim=24), SentencePieceVectorizer()
    model.build()
    folder = tmp_path_factory.mktemp("export") / "st5"
    export_saved_model(model, vectorizer, folder, name="tiny", max_length=128)
    return folder, np.asarray(model(vectorizer.padded(tf.constant(TEXTS), 128)))


def test_strings_in_vectors_out(exported: tuple[Path, np.ndarray]) -> None:
    folder, expected = exported
    encoder = use_st5.load(folder)
    assert (encoder.dimension, encoder.max_length) == (24, 128)
    np.testing.assert_allclose(encoder.encode(TEXTS), expected, atol=1e-5)
    np.testing.assert_allclose(encoder.encode(TEXTS, batch_size=1), expected, atol=1e-5)


def test_preprocessor_and_encoder_apart(exported: tuple[Path, np.ndarray]) -> None:
    folder, expected = exported
    loaded = tf.saved_model.load(str(folder))
    ids = loaded.preprocess(tf.constant(TEXTS))
    assert ids.shape[1] == 128
    np.testing.assert_allclose(loaded.encode_ids(ids), expected, atol=1e-5)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(loaded.encode_ids(ids, training=True)[:, 0])
    gradients = tape.gradient(loss, loaded.trainable_variables)
    assert all(gradient is not None for gradient in gradients)
    ops = {op.type for op in loaded.signatures["ids"].graph.get_operations()}
    assert not any("String" in op or "Sentencepiece" in op for op in ops)


@pytest.mark.process
def test_without_tensorflow_text_one_line_says_what_to_install(
    exported: tuple[Path, np.ndarray], fresh_python: Callable[..., str]
) -> None:
    code = (
        "import sys; sys.modules['tensorflow_text'] = None\n"
        "import use_st5\n"
        f"try: use_st5.load({str(exported[0])!r})\n"
        "except ImportError as error: print(error)\n"
    )
    message = fresh_python("-c", code)
    assert 'pip install "tensorflow-text==' in message
    assert message.count("\n") == 1
