"""Connections of uvicorn that end when the client neither asks nor reads."""

from __future__ import annotations

import asyncio
from typing import Any

from use_st5._imports import require

_HTTPProtocol: Any = require("uvicorn.protocols.http.auto", "serve").AutoHTTPProtocol


class TimedConnection(_HTTPProtocol):
    """A connection that must ask, and read its answers, in reasonable time.

    uvicorn ends a connection that is idle after an answer. It waits without end for the first
    request, for the rest of a header, and for a client that does not read. Such a connection ends
    here after `seconds` to twice as many. If twice `limit_concurrency` are open, a further one ends
    at once, so that the process keeps file descriptors for its work.

    Attributes:
        seconds: Time between two checks.
    """

    seconds = 30.0

    def connection_made(self, transport: Any) -> None:
        """Begins the checks of a new connection."""
        super().connection_made(transport)
        self._next_check: asyncio.TimerHandle | None = None
        most = self.config.limit_concurrency
        if most is not None and len(self.connections) > 2 * most:
            transport.abort()
        else:
            self._watch(None)

    def connection_lost(self, exc: Exception | None) -> None:
        """Ends the checks."""
        if self._next_check is not None:
            self._next_check.cancel()
        super().connection_lost(exc)

    def _watch(self, before: Any) -> None:
        """Ends the connection if it has had no request for some seconds, and handles none.

        After an answer that was read, uvicorn closes the connection sooner.
        """

        def check() -> None:
            is_idle = self.cycle is None or self.cycle.response_complete
            if is_idle and self.cycle is before:
                self.transport.abort()
            else:
                self._watch(self.cycle)

        self._next_check = self.loop.call_later(self.seconds, check)
