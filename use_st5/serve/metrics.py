"""Counters of the server, as Prometheus reads them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from use_st5._imports import require
from use_st5.serve.limits import Message, Receive, Send

require("prometheus_client", "serve")

from prometheus_client import (  # noqa: E402
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)

_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class Metrics:
    """The counters of one application.

    Args:
        waiting: Returns the number of texts that wait.

    Attributes:
        texts: Texts and pairs that were accepted.
        batch_size: Texts or pairs of each batch.
        media_type: The media type of `text`.
    """

    media_type = CONTENT_TYPE_LATEST

    def __init__(self, waiting: Callable[[], int]) -> None:
        self._registry = CollectorRegistry()
        options = {"registry": self._registry}
        self._requests = Counter(
            "use_st5_requests", "Requests that were answered.", ["path", "status"], **options
        )
        self._seconds = Histogram(
            "use_st5_request_seconds", "Time to answer.", ["path"], buckets=_SECONDS, **options
        )
        self.texts = Counter("use_st5_texts", "Texts and pairs that were accepted.", **options)
        self.batch_size = Histogram(
            "use_st5_batch_size", "Texts or pairs of each batch.", buckets=_SIZES, **options
        )
        queue = Gauge("use_st5_waiting_texts", "Texts and pairs that wait.", **options)
        queue.set_function(waiting)

    def count(self, path: str, status: int, seconds: float) -> None:
        """Counts a request that was answered."""
        self._seconds.labels(path).observe(seconds)
        self._requests.labels(path, str(status)).inc()

    def text(self) -> bytes:
        """All counters."""
        return generate_latest(self._registry)


class CountRequests:
    """ASGI middleware that counts each request by its route.

    Args:
        app: The application.
        metrics: Its counters.
    """

    def __init__(self, app: Any, *, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Handles a connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, status = time.perf_counter(), 500

        async def noted(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            await self._app(scope, receive, noted)
        finally:
            path = getattr(scope.get("route"), "path", "other")
            self._metrics.count(path, status, time.perf_counter() - start)
