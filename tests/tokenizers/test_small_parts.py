"""Length buckets, tables of code points, and texts as bytes."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from use_st5.tokenizers.byte_tokenizer import ByteTokenizer
from use_st5.tokenizers.code_points import (
    CODE_POINTS,
    CodePointRewriter,
    CodePointTable,
    in_ranges,
    spread,
)
from use_st5.tokenizers.tokenizer import Tokenizer, pad_to_bucket


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


def test_a_cut_text_has_whole_characters() -> None:
    tokenizer = ByteTokenizer()
    for limit, expected in ((1, "ab"), (2, "abéd"), (3, "abéd")):
        ids = tokenizer.token_ids(tf.constant(["abéd"]), limit)
        assert ids.shape == (1, limit)
        assert tokenizer.strings(ids).numpy()[0].decode() == expected


def test_other_bytes_are_replaced() -> None:
    ids = ByteTokenizer().padded(tf.constant([b"a\xff"]))
    assert ByteTokenizer.strings(ids).numpy()[0].decode() == "a\ufffd"
