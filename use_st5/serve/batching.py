"""Requests of many clients, computed together in batches of a bounded size."""

from __future__ import annotations

import collections
import dataclasses
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

import numpy as np

# A token of English has about four bytes of UTF-8. Counting tokens exactly would tokenize every
# text twice.
_BYTES_PER_TOKEN = 4


class QueueFullError(Exception):
    """The queue has no space for a request: the client should try again later."""


class ClosedError(Exception):
    """The server is stopping."""


@dataclasses.dataclass(frozen=True, eq=False)
class _Request:
    """A request: the parts that wait, each with its tokens, and the rows of the others."""

    parts: collections.deque[tuple[int, list[Any]]]
    rows: list[np.ndarray]
    future: Future[np.ndarray]


class Batcher:
    """Computes the requests of many clients together, on one thread.

    The thread takes waiting requests in their order until a batch has `batch_tokens`. A request
    with more tokens is divided: after each of its parts the other requests have their turn. While a
    batch is computed, the next requests wait.

    Args:
        compute: Items → an array with one row per item. It is called on one thread only.
        batch_tokens: Maximum number of tokens in a batch, unless one text has more.
        queue_size: Maximum number of items that wait.

    Attributes:
        on_batch: Called with the number of items of each batch, for metrics.
    """

    def __init__(
        self,
        compute: Callable[[list[Any]], np.ndarray],
        *,
        batch_tokens: int = 16_384,
        queue_size: int = 8192,
    ) -> None:
        self._compute = compute
        self._batch_tokens = batch_tokens
        self._queue_size = queue_size
        self._waiting: collections.deque[_Request] = collections.deque()
        self._items = 0
        self._closed = False
        self._changed = threading.Condition()
        self.on_batch: Callable[[int], None] = lambda size: None
        self._thread = threading.Thread(target=self._run, name="use_st5-batcher", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Number of items that wait."""
        return self._items

    def submit(self, items: Sequence[Any]) -> Future[np.ndarray]:
        """Adds texts, or pairs of texts, to the queue.

        Returns:
            A future of an array `[items, …]`. Cancel it if nobody waits for the result.
        """
        parts: collections.deque[tuple[int, list[Any]]] = collections.deque()
        for item in items:
            tokens = estimated_tokens(item)
            if parts and parts[-1][0] + tokens <= self._batch_tokens:
                parts[-1][1].append(item)
                parts[-1] = (parts[-1][0] + tokens, parts[-1][1])
            else:
                parts.append((tokens, [item]))
        request = _Request(parts, [], Future())
        with self._changed:
            if self._closed:
                raise ClosedError("The server is stopping.")
            if self._items + len(items) > self._queue_size:
                raise QueueFullError(
                    f"{self._items:,} texts are waiting and {len(items):,} more do not fit into "
                    f"the queue of {self._queue_size:,}. Try again later."
                )
            self._waiting.append(request)
            self._items += len(items)
            self._changed.notify()
        request.future.add_done_callback(lambda future: self._drop(request))
        return request.future

    def close(self) -> None:
        """Refuses new requests, computes those that wait, and ends the thread."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _drop(self, request: _Request) -> None:
        """Gives up the places of a request that has ended, if parts of it still wait."""
        with self._changed:
            if request.parts and request in self._waiting:
                self._waiting.remove(request)
                self._items -= sum(len(part) for _, part in request.parts)
                request.parts.clear()

    def _run(self) -> None:
        while batch := self._next_batch():
            batch = [(request, part) for request, part in batch if not request.future.cancelled()]
            if not batch:
                continue
            items = [item for _, part in batch for item in part]
            self.on_batch(len(items))
            requests = dict.fromkeys(request for request, _ in batch)
            try:
                rows = self._compute(items)
            except Exception as error:  # The waiting clients get the error.
                for request in requests:
                    if request.future.set_running_or_notify_cancel():
                        request.future.set_exception(error)
                continue
            ends = np.cumsum([len(part) for _, part in batch])
            for (request, _), part_rows in zip(batch, np.split(rows, ends[:-1]), strict=True):
                request.rows.append(part_rows)
            for request in requests:
                if not request.parts and request.future.set_running_or_notify_cancel():
                    request.future.set_result(np.concatenate(request.rows))

    def _next_batch(self) -> list[tuple[_Request, list[Any]]]:
        """Returns parts of requests for one batch; none when the batcher is closed and empty."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed)
            batch: list[tuple[_Request, list[Any]]] = []
            tokens = 0
            while self._waiting:
                tokens += self._waiting[0].parts[0][0]
                if batch and tokens > self._batch_tokens:
                    break
                request = self._waiting.popleft()
                batch.append((request, request.parts.popleft()[1]))
                self._items -= len(batch[-1][1])
                if request.parts:
                    self._waiting.append(request)
            return batch


def estimated_tokens(item: Any) -> int:
    """Estimates the number of tokens of a text or of a pair of texts."""
    if isinstance(item, str):
        size = len(item) if item.isascii() else len(item.encode("utf-8", "replace"))
        return size // _BYTES_PER_TOKEN + 1
    return sum(map(estimated_tokens, item))
