from __future__ import annotations

import itertools
import os

import pytest

from use_st5.io.streams import batched, in_chunks, in_threads


@pytest.mark.parametrize(
    ("items", "lists"), [("", []), ("abc", [["a", "b"], ["c"]]), ("abcd", [["a", "b"], ["c", "d"]])]
)
def test_a_stream_in_lists(items: str, lists: list[list[str]]) -> None:
    assert list(batched(items, 2)) == lists


def test_a_stream_is_read_as_far_as_its_lists_are() -> None:
    numbers = itertools.count()
    lists = batched(numbers, 3)
    assert [next(lists), next(lists)] == [[0, 1, 2], [3, 4, 5]]
    assert next(numbers) == 6


def test_chunks_end_by_rows_or_with_the_text_that_brings_them_to_their_characters() -> None:
    texts = ["aaa", "bbbb", "c", "d", "e", "ffffffffff", "g"]
    found = in_chunks(texts, rows=3, characters=7, length=len)
    assert list(found) == [["aaa", "bbbb"], ["c", "d", "e"], ["ffffffffff"], ["g"]]


def test_threads_keep_the_order_and_take_little_ahead() -> None:
    numbers = itertools.count()
    results = in_threads(lambda n: n * n, numbers)
    assert list(itertools.islice(results, 5)) == [0, 1, 4, 9, 16]
    assert next(numbers) <= 6 + (os.cpu_count() or 1)
    with pytest.raises(ZeroDivisionError):
        list(in_threads(lambda n: 1 // n, [1, 0]))
