"""Streams, in their order, as lists that are worked on at once."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")


def batched(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Cuts a stream into lists of so many items, of which the last may be shorter."""
    stream = iter(items)
    while batch := list(itertools.islice(stream, size)):
        yield batch


def in_chunks(
    items: Iterable[Item], *, rows: int, characters: int, length: Callable[[Item], int]
) -> Iterator[list[Item]]:
    """Cuts a stream of texts into lists that one call of an encoder gets.

    Args:
        items: Texts, or what holds one.
        rows: Items in a list at most.
        characters: A list ends with the item that brings it to so many.
        length: Characters of an item.
    """
    chunk: list[Item] = []
    filled = 0
    for item in items:
        chunk.append(item)
        filled += length(item)
        if len(chunk) == rows or filled >= characters:
            yield chunk
            chunk, filled = [], 0
    if chunk:
        yield chunk
