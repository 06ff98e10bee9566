"""Streams, cut into lists of items that are processed together, in order."""

from __future__ import annotations

import itertools
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def batched(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Cuts a stream into lists of `size` items; the last list may be shorter."""
    stream = iter(items)
    while batch := list(itertools.islice(stream, size)):
        yield batch


def in_chunks(
    items: Iterable[Item], *, rows: int, characters: int, length: Callable[[Item], int]
) -> Iterator[list[Item]]:
    """Cuts a stream of texts into lists that one call of an encoder gets.

    Args:
        items: Texts, or items that contain a text.
        rows: The most items in a list.
        characters: A list ends with the item that brings it to at least this many characters.
        length: Returns the number of characters of an item.
    """
    chunk: list[Item] = []
    total = 0
    for item in items:
        chunk.append(item)
        total += length(item)
        if len(chunk) == rows or total >= characters:
            yield chunk
            chunk, total = [], 0
    if chunk:
        yield chunk


def in_threads(function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """Yields what a function returns for each item, in their order, computed by several threads.

    No more items are read ahead than there are threads, one for each processor.
    """
    threads = os.cpu_count() or 1
    results: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        for item in items:
            results.append(pool.submit(function, item))
            if len(results) > threads:
                yield results.popleft().result()
        while results:
            yield results.popleft().result()
