from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from use_st5.footprint.probe import Probe, sentences


@pytest.fixture(scope="module")
def probe(exported: dict[str, Path]) -> Probe:
    return Probe(exported["transformer"], batch_size=2)


def test_ids_are_not_cut(probe: Probe) -> None:
    """Token by token they are those that the model itself gives for each word."""
    texts = sentences(37, 2)
    ids = probe.ids(texts).numpy()
    assert ids.shape == (2, 37)
    preprocess = probe._encoder.model.preprocess
    assert preprocess(tf.constant(texts)).shape == (2, 8)
    words = preprocess(tf.constant(texts[1].split())).numpy()[:, 0]
    np.testing.assert_array_equal(ids[1], words)


def test_a_visit(probe: Probe) -> None:
    tokens, visit = probe.visit(20)
    assert tokens == 20
    assert visit.text_seconds > 0
    assert visit.ids_seconds > 0
    assert probe.parameter_bytes == 4 * sum(
        int(np.prod(each.shape)) for each in probe._encoder.model.variables
    )


def test_working_memory_grows_with_the_square(probe: Probe) -> None:
    """Two heads' attention over 2048 tokens: 2 texts · 2 heads · 2048² · 4 bytes, at least once.

    Four times the length is sixteen times the square; more than eight is far above a line's four,
    whichever of the small buffers this processor's allocator counts.
    """
    long, short = probe.visit(2048)[1].working_bytes, probe.visit(512)[1].working_bytes
    if long is None:
        pytest.skip("this TensorFlow does not count the processor's memory")
    assert long >= 2 * 2 * 2048**2 * 4
    assert long / short > 8


def test_sentences_are_the_same_for_every_model() -> None:
    texts = sentences(12, 3)
    assert texts == sentences(12, 3)
    assert len(set(texts)) == 3
    assert {len(text.split()) for text in texts} == {12}


def test_a_model_without_ids(tmp_path: Path) -> None:
    root = tf.Module()
    root.__call__ = tf.function(
        lambda text: tf.zeros([tf.shape(text)[0], 3]),
        input_signature=[tf.TensorSpec([None], tf.string)],
    )
    tf.saved_model.save(root, str(tmp_path))
    with pytest.raises(ValueError, match="with the signature `ids`"):
        Probe(tmp_path, batch_size=1)
