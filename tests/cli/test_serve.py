"""`use-st5 serve`: models by name, a clean stop, and addresses that are taken."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="the extra `serve` is not installed")
pytest.importorskip("uvicorn", reason="the extra `serve` is not installed")


from use_st5.cli.serve import _listen

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


@pytest.mark.process
@pytest.mark.end_to_end
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
