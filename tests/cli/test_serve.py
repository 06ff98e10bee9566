"""`use-st5 serve`: models by name, a clean stop, and addresses that are taken."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the extra `serve` is not installed")
pytest.importorskip("uvicorn", reason="the extra `serve` is not installed")

import uvicorn

from use_st5.cli import serve
from use_st5.cli.serve import _listen
from use_st5.encode.cross_encoder import CrossEncoder
from use_st5.io import progress

REPOSITORY = Path(__file__).resolve().parents[2]


def test_an_address_that_is_taken_is_told_before_a_model_is_loaded(use: Callable) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        result = use("serve", "absent", "--port", port)
    assert result.exit_code == 1
    assert "expected an address that is free" in result.stderr


@pytest.mark.skipif(not socket.has_ipv6, reason="this machine has no IPv6")
def test_an_address_of_ipv6() -> None:
    with _listen("::1", 0) as listening:
        assert listening.getsockname()[0] == "::1"


def test_a_server_that_runs_writes_nothing(use: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other commands write a line when they have worked for ten seconds."""
    written = io.StringIO()

    def run(*_: Any, **__: Any) -> None:
        with contextlib.redirect_stderr(written):
            time.sleep(0.5)

    monkeypatch.setattr(serve, "_load", lambda *_: {"letters": CrossEncoder(print, name="letters")})
    monkeypatch.setattr(progress, "_LINE_EVERY", 0.1)
    monkeypatch.setattr(uvicorn.Server, "run", run)
    # It closes the handlers of all loggers, and absl's closes the stream that pytest captures.
    monkeypatch.setattr(uvicorn.Config, "configure_logging", lambda _: None)
    with progress.progress_lines(lambda: "use-st5 serve is running"):
        assert use("serve", "letters", "--port", "0").exit_code == 0
    assert written.getvalue() == ""


@pytest.mark.process
def test_it_answers_and_stops_at_sigterm(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "use_st5", "serve", "use_dan_en", "--port", "0"]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, cwd=tmp_path, env=environment
    ) as server:
        assert server.stderr is not None
        told = next(line for line in server.stderr if line.startswith("serving"))
        assert told.startswith("serving use_dan_en on http://127.0.0.1:")
        url = re.search(r"http://\S+", told)
        assert url is not None
        request = urllib.request.Request(
            f"{url[0]}/v1/embeddings",
            json.dumps({"input": "How old are you?"}).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=30) as response:
            vector = json.load(response)["data"][0]["embedding"]
        assert len(vector) == 512
        server.send_signal(signal.SIGTERM)
        assert server.wait(30) in (0, -signal.SIGTERM)
        assert server.stderr.read() == ""
