"""Connections that neither ask nor read are closed, and too many are refused."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("uvicorn", reason="the extra `serve` is not installed")

from tests.serve.running import running
from use_st5.serve.connections import TimedConnection

# More than the kernel keeps for a client that does not read.
LARGE = 40_000_000


class Impatient(TimedConnection):
    """Connections that are closed after 0.3 to 0.6 seconds."""

    seconds = 0.3


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Answers /large with many bytes, everything else with few, and /slow late."""
    if scope["type"] != "http":
        return
    if scope["path"] == "/slow":
        await asyncio.sleep(1.0)
    body = b"x" * (LARGE if scope["path"] == "/large" else 3)
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@pytest.fixture(scope="module")
def address() -> Iterator[tuple[str, int]]:
    """Host and port of a server with these connections."""
    with running(app, http=Impatient, limit_concurrency=5) as url:
        host, port = url.removeprefix("http://").split(":")
        yield host, int(port)


def received(client: socket.socket) -> int:
    """The number of bytes that come until the server closes the connection."""
    total = 0
    with contextlib.suppress(ConnectionResetError):
        while part := client.recv(2**20):
            total += len(part)
    return total


@pytest.mark.parametrize("sent", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: x\r\nA: b"])
def test_a_connection_without_a_whole_request_is_closed(
    address: tuple[str, int], sent: bytes
) -> None:
    with socket.create_connection(address, timeout=10) as client:
        client.sendall(sent)
        start = time.monotonic()
        assert received(client) == 0
        assert time.monotonic() - start < 5


def test_a_header_that_trickles_does_not_keep_a_connection(address: tuple[str, int]) -> None:
    with socket.create_connection(address, timeout=10) as client, pytest.raises(OSError):
        for byte in b"GET / HTTP/1.1\r\nHost: x\r\nA: " + b"b" * 100:
            client.sendall(bytes([byte]))
            time.sleep(0.03)


def test_a_client_that_does_not_read_is_closed(address: tuple[str, int]) -> None:
    with socket.create_connection(address, timeout=10) as client:
        client.sendall(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
        time.sleep(1.5)
        assert 0 < received(client) < LARGE


def test_a_client_that_asks_and_reads_is_answered(address: tuple[str, int]) -> None:
    """The work on a request may take longer than the time between two checks."""
    import httpx

    with httpx.Client(base_url="http://{}:{}".format(*address), timeout=10) as client:
        for path in ("/slow", "/", "/large", "/slow", "/"):
            assert len(client.get(path).content) == (LARGE if path == "/large" else 3)
            time.sleep(0.2)


def test_connections_beyond_twice_the_limit_are_closed_at_once() -> None:
    with (
        running(app, http=TimedConnection, limit_concurrency=2) as url,
        contextlib.ExitStack() as stack,
    ):
        host, port = url.removeprefix("http://").split(":")
        clients = []
        for _ in range(5):
            client = socket.create_connection((host, int(port)), timeout=5)
            clients.append(stack.enter_context(client))
        assert received(clients[4]) == 0
        clients[3].sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert clients[3].recv(100).startswith(b"HTTP/1.1 503")
