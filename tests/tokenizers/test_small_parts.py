"""Length buckets, tables of code points, and texts as bytes."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from use_st5.models.use_transformer.model import USETransformer, USETransformerConfig
from use_st5.tokenizers.byte_tokenizer import ByteTokenizer
from use_st5.tokenizers.code_points import (
    CODE_POINTS,
    CodePointRewriter,
    CodePointTable,
    decode,
    in_ranges,
    spread,
)
from use_st5.tokenizers.tokenizer import BUCKETS, Tokenizer, pad_to_bucket


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


def test_ranges() -> None:
    assert in_ranges("41-43 61 1F600-1F601") == [65, 66, 67, 97, 0x1F600, 0x1F601]


def test_rows_end_to_end() -> None:
    rows, columns = spread(tf.constant([2, 0, 3]))
    assert rows.numpy().tolist() == [0, 0, 2, 2, 2]
    assert columns.numpy().tolist() == [0, 1, 0, 1, 2]


def test_a_table_gives_what_it_was_made_of() -> None:
    values = np.random.default_rng(0).integers(-9, 9, CODE_POINTS, np.int32)
    values[4096:99_999] = 7
    points = tf.range(CODE_POINTS)
    np.testing.assert_array_equal(CodePointTable(values)(points), values)


def test_texts_rewritten() -> None:
    rewriter = CodePointRewriter({ord("é"): "e", ord("-"): "", ord("½"): "1/2", ord("a"): "😀"})
    texts = ["café", "-", "", "x½--y½", "plain", b"\xffa"]
    assert [text.decode() for text in rewriter(tf.constant(texts)).numpy()] == [
        "c😀fe", "", "", "x1/2y1/2", "pl😀in", "\ufffd😀",
    ]  # fmt: skip
    one_each = ["café", "abc"]
    assert [text.decode() for text in rewriter(tf.constant(one_each)).numpy()] == ["c😀fe", "😀bc"]


def test_code_points() -> None:
    points, splits = decode(tf.constant(["aé", "", "😀"]))
    assert points.numpy().tolist() == [97, 233, 0x1F600]
    assert splits.numpy().tolist() == [0, 2, 2, 3]


TEXTS = ["", "a", "abc", "abcd", "Ünheard-of 😀 words", "日本語", " spaces  ", "\n"]


def test_texts_come_back() -> None:
    tokenizer = ByteTokenizer()
    assert isinstance(tokenizer, Tokenizer)
    ids = tokenizer.padded(tf.constant(TEXTS))
    assert [each.decode() for each in tokenizer.strings(ids).numpy()] == TEXTS
    counts = tf.math.count_nonzero(ids, axis=1, dtype=tf.int32).numpy().tolist()
    assert counts == tokenizer.token_counts(tf.constant(TEXTS)).numpy().tolist()
    assert counts[:4] == [1, 1, 1, 2]
    assert int(tf.reduce_max(ids)) < tokenizer.vocabulary.size
    for text, row in zip(TEXTS, ids.numpy(), strict=True):
        alone = tokenizer.padded(tf.constant([text])).numpy()[0]
        assert row[: len(alone)].tolist() == alone.tolist()


def test_the_bytes_of_an_id() -> None:
    ids = ByteTokenizer().padded(tf.constant(["abcd"])).numpy().tolist()
    assert ids == [[1 + 97 + 98 * 256 + 99 * 65536, 1 + 100]]


def test_a_cut_text_has_whole_characters() -> None:
    tokenizer = ByteTokenizer()
    for limit, expected in ((1, "ab"), (2, "abéd"), (3, "abéd")):
        ids = tokenizer.token_ids(tf.constant(["abéd"]), limit)
        assert ids.shape == (1, limit)
        assert tokenizer.strings(ids).numpy()[0].decode() == expected


def test_other_bytes_are_replaced() -> None:
    ids = ByteTokenizer().padded(tf.constant([b"a\xff"]))
    assert ByteTokenizer.strings(ids).numpy()[0].decode() == "a\ufffd"
