"""Around the application: limits on the body of a request, and counters for Prometheus."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import msgspec

from use_st5._imports import require

require("prometheus_client", "serve")

from prometheus_client import (  # noqa: E402
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


def error_body(message: str, kind: str = "invalid_request_error") -> bytes:
    """Returns an error in JSON, as the API of OpenAI writes it."""
    error = {"message": message, "type": kind, "param": None, "code": None}
    return msgspec.json.encode({"error": error})


class BodyLimits:
    """ASGI middleware that reads the body first: too large is the status 413, too slow 408."""

    def __init__(self, app: Any, *, body_bytes: int, body_seconds: float) -> None:
        self._app, self._bytes, self._seconds = app, body_bytes, body_seconds

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Handles a connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body: bytes | None = None
        try:
            stated = dict(scope["headers"]).get(b"content-length", b"0")
            if not (stated.isdigit() and int(stated) > self._bytes):
                async with asyncio.timeout(self._seconds):
                    body = await self._read(receive)
            status, message = 413, f"The body has more than {self._bytes:,} bytes."
        except TimeoutError:
            status, message = 408, f"The body did not arrive within {self._seconds:g} seconds."
        if body is None:
            headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
            await send({"type": "http.response.start", "status": status, "headers": headers})
            await send({"type": "http.response.body", "body": error_body(message)})
            return
        first: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay() -> Message:
            return first.pop() if first else await receive()

        await self._app(scope, replay, send)

    async def _read(self, receive: Receive) -> bytes | None:
        """The body; None if it is too large."""
        body = bytearray()
        has_more = True
        while has_more:
            message = await receive()
            body += message.get("body", b"")
            has_more = message.get("more_body", False)
            if len(body) > self._bytes:
                return None
        return bytes(body)


class Metrics:
    """The counters of one application; `waiting` returns the number of texts that wait."""

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
    """ASGI middleware that counts each request by its route."""

    def __init__(self, app: Any, *, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics

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
