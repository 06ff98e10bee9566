from __future__ import annotations

import numpy as np
import tensorflow as tf

from use_st5.tokenizers.code_points import (
    CODE_POINTS,
    CodePointRewriter,
    CodePointTable,
    decode,
    in_ranges,
    spread,
)


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
