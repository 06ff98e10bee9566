"""The fingerprint, compared with TensorFlow's."""

from __future__ import annotations

import random

import tensorflow as tf

from use_st5.engines.farmhash import fingerprint64


def test_buckets_are_those_of_tensorflow_for_every_length() -> None:
    draw = random.Random(0)
    texts = [draw.randbytes(length) for length in [*range(200), 1000, 4096] for _ in range(3)]
    expected = tf.strings.to_hash_bucket_fast(texts, 2**61 - 1).numpy()
    assert [fingerprint64(text) % (2**61 - 1) for text in texts] == expected.tolist()
