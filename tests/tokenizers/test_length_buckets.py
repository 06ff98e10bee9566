from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from use_st5.models.use_transformer.model import USETransformer, USETransformerConfig
from use_st5.tokenizers.length_buckets import BUCKETS, pad_to_bucket


def rows(*lengths: int, width: int) -> np.ndarray:
    ids = np.zeros((len(lengths), width), np.int32)
    for row, length in enumerate(lengths):
        ids[row, :length] = np.random.default_rng(length).integers(1, 40, length)
    return ids


@pytest.mark.parametrize(
    ("lengths", "width", "bucket"),
    [((3, 4), 4, 4), ((3, 4), 30, 4), ((5, 1), 5, 8), ((), 7, 4), ((0,), 0, 4), ((8,), 9, 8)],
)
def test_the_smallest_bucket_that_holds_the_longest_row(
    lengths: tuple[int, ...], width: int, bucket: int
) -> None:
    ids = rows(*lengths, width=width)
    padded = pad_to_bucket(ids, (4, 8))
    assert (padded.shape, padded.dtype) == ((len(lengths), bucket), tf.int32)
    kept = min(width, bucket)
    np.testing.assert_array_equal(padded[:, :kept], ids[:, :kept])
    assert not padded.numpy()[:, kept:].any()
    assert not ids[:, kept:].any()


def test_nothing_is_cut_in_silence() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="at most 8 ids"):
        pad_to_bucket(rows(9, 2, width=9), (4, 8))
    for buckets in ((), (0, 4), (8, 4), (4, 4)):
        with pytest.raises(ValueError, match="ascending lengths"):
            pad_to_bucket(rows(2, width=2), buckets)


def test_in_a_pipeline() -> None:
    batches = [rows(3, width=3), rows(20, 2, width=25), rows(128, width=128)]
    shape = tf.TensorSpec([None, None], tf.int32)
    data = tf.data.Dataset.from_generator(lambda: iter(batches), output_signature=shape)
    found = list(data.map(pad_to_bucket))
    assert [each.shape[1] for each in found] == [16, 32, 128]
    with pytest.raises(tf.errors.InvalidArgumentError, match="at most 16 ids"):
        list(data.map(lambda ids: pad_to_bucket(ids, (8, 16))))


def test_no_more_programs_than_buckets_and_the_same_vectors() -> None:
    model = USETransformer(USETransformerConfig(40, 6, 1, 8, 12, 2, dimension=5))
    model.build()
    compiled = tf.function(model, jit_compile=True)
    for length in (1, 7, 16, 17, 30, 33, 60, 64, 65, 90, 127, 128):
        ids = rows(length, max(1, length // 2), width=length)
        np.testing.assert_allclose(compiled(pad_to_bucket(ids)), model(ids), atol=1e-5)
    assert compiled.experimental_get_tracing_count() == len(BUCKETS)
