"""Limits on the body of a request: its size, and the time that a client may take to send it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import msgspec

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


def error_body(message: str, kind: str = "invalid_request_error") -> bytes:
    """Returns an error in JSON, as the API of OpenAI writes it."""
    error = {"message": message, "type": kind, "param": None, "code": None}
    return msgspec.json.encode({"error": error})


class BodyLimits:
    """ASGI middleware that reads the body before the application sees the request.

    Args:
        app: The application.
        body_bytes: Larger bodies are refused with the status 413.
        body_seconds: If a body takes longer, the request is refused with the status 408.
    """

    def __init__(self, app: Any, *, body_bytes: int, body_seconds: float) -> None:
        self._app = app
        self._bytes = body_bytes
        self._seconds = body_seconds

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Handles a connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        stated = dict(scope["headers"]).get(b"content-length", b"0")
        if stated.isdigit() and int(stated) > self._bytes:
            await self._refuse(send, 413, f"The body has more than {self._bytes:,} bytes.")
            return
        try:
            async with asyncio.timeout(self._seconds):
                body = await self._read(receive)
        except TimeoutError:
            message = f"The body did not arrive within {self._seconds:g} seconds."
            await self._refuse(send, 408, message)
            return
        if body is None:
            await self._refuse(send, 413, f"The body has more than {self._bytes:,} bytes.")
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

    @staticmethod
    async def _refuse(send: Send, status: int, message: str) -> None:
        headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": error_body(message)})
