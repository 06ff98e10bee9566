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


import use_st5
from use_st5.cli.serve import _listen
from use_st5.search import VectorIndex

REPOSITORY = Path(__file__).resolve().parents[2]


def test_an_address_that_is_taken_is_told_before_a_model_is_loaded(use: Callable) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        result = use("serve", "absent", "--port", port)
    assert result.exit_code == 1
    assert "expected an address that is free" in result.stderr


def test_an_origin_has_a_scheme(use: Callable) -> None:
    result = use("serve", "absent", "--cors", "https://a.org,a.org")
    assert result.exit_code == 2
    assert "expects origins such as" in result.stderr


@pytest.mark.skipif(not socket.has_ipv6, reason="this machine has no IPv6")
def test_an_address_of_ipv6() -> None:
    with _listen("::1", 0) as listening:
        assert listening.getsockname()[0] == "::1"


@pytest.mark.process
@pytest.mark.end_to_end
def test_it_answers_and_stops_at_sigterm(tmp_path: Path) -> None:
    encoder, texts = use_st5.load("use_dan_en"), ["a cat", "a train"]
    index = tmp_path / "index"
    VectorIndex.build(index, encoder.encode(texts), encoder=encoder, texts=texts)
    command = [sys.executable, "-m", "use_st5", "serve", "use_dan_en", "--port", "0"]
    command += ["--index", str(index), "--cors", "https://b.org, https://a.org/"]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, cwd=tmp_path, env=environment
    ) as server:
        assert server.stderr is not None
        told = next(line for line in server.stderr if line.startswith("serving"))
        assert told.startswith("serving use_dan_en on http://127.0.0.1:")
        url = re.search(r"http://\S+", told)
        assert url is not None
        headers = {"Content-Type": "application/json", "Origin": "https://a.org"}
        body = json.dumps({"query": "cats", "top_k": 1}).encode()
        request = urllib.request.Request(f"{url[0]}/search", body, headers)
        with urllib.request.urlopen(request, timeout=30) as response:
            found = json.load(response)["queries"][0]["found"]
            assert response.headers["Access-Control-Allow-Origin"] == "https://a.org"
        assert found[0]["text"] == "a cat"
        server.send_signal(signal.SIGTERM)
        assert server.wait(30) in (0, -signal.SIGTERM)
        assert server.stderr.read() == ""
