"""The server under load: throughput compared with `encode`, response times, memory.

    pip install ".[serve]"
    python -m benchmarks.server_load sentences.txt
    python -m benchmarks.server_load sentences.txt --model use_transformer_en --seconds 60

Each client sends one request after another, with 1, 4, 16 or 64 texts (drawn by the seed). The
server runs in a process of its own. Before and after, `encode` computes requests of the same kind
in this process, one call each: the ratio is the server's texts per second to those of `encode`. All
traffic stays on 127.0.0.1.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

_SIZES = (1, 4, 16, 64)


def requests(texts: list[str], seed: int) -> Iterator[list[str]]:
    """Endless requests of some texts each."""
    random = np.random.default_rng(seed)
    while True:
        start = random.integers(len(texts) - max(_SIZES))
        yield texts[start : start + random.choice(_SIZES)]


def encode_speed(model: str, backend: Any, texts: list[str], seconds: float) -> float:
    """Texts per second of `encode`, one call per request."""
    import use_st5

    encoder = use_st5.load(model, backend=backend)
    stream = requests(texts, seed=0)
    for _ in range(20):
        encoder.encode(next(stream), on_truncation="ignore")
    start, text_count = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        request = next(stream)
        encoder.encode(request, on_truncation="ignore")
        text_count += len(request)
    return text_count / (time.perf_counter() - start)


@contextlib.contextmanager
def server(model: str, backend: str) -> Iterator[tuple[str, int]]:
    """The address and the process id of a server."""
    command = [sys.executable, "-m", "use_st5", "serve", model, "--port", "0", "--backend", backend]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            for line in process.stderr or ():
                if found := re.search(r"http://\S+", line):
                    yield found[0], process.pid
                    break
        finally:
            process.terminate()


def load(url: str, texts: list[str], clients: int, seconds: float) -> tuple[list[float], int]:
    """Response times in seconds, and the number of texts; a thread for each client."""
    times: list[float] = []
    sizes: list[int] = []
    end = time.perf_counter() + seconds

    def one(seed: int) -> None:
        connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=120)
        for request in requests(texts, seed):
            start = time.perf_counter()
            if start > end:
                break
            body = json.dumps({"input": request, "encoding_format": "base64"})
            kind = {"Content-Type": "application/json"}
            connection.request("POST", "/v1/embeddings", body, kind)
            response = connection.getresponse()
            answer = response.read()
            if response.status != 200:
                raise RuntimeError(f"Expected the status 200, received {answer!r}.")
            times.append(time.perf_counter() - start)
            sizes.append(len(request))
        connection.close()

    with ThreadPoolExecutor(clients) as threads:
        list(threads.map(one, range(clients)))
    return times, sum(sizes)


def resident(process: int) -> float:
    """Memory of a process, in MB."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * 4096 / 1e6


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("texts", type=Path)
    parser.add_argument("--model", default="use_dan_en")
    parser.add_argument("--backend", default="tensorflow")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=60)
    arguments = parser.parse_args()
    texts = arguments.texts.read_text(encoding="utf-8").splitlines()
    encode_speeds = [encode_speed(arguments.model, arguments.backend, texts, 10)]
    with server(arguments.model, arguments.backend) as (url, process):
        load(url, texts, arguments.clients, 3)
        before = resident(process)
        times, text_count = load(url, texts, arguments.clients, arguments.seconds)
        after = resident(process)
    encode_speeds.append(encode_speed(arguments.model, arguments.backend, texts, 10))
    speed = text_count / arguments.seconds
    print(f"{arguments.model}: {len(times):,} requests of {arguments.clients} clients, no error")
    print(
        f"texts per second: server {speed:,.0f}, encode {encode_speeds[0]:,.0f} and "
        f"{encode_speeds[1]:,.0f}"
    )
    print(f"ratio: {speed / np.mean(encode_speeds):.2f}")
    p50, p99 = np.percentile(times, [50, 99]) * 1000
    print(f"response time: p50 {p50:.0f} ms, p99 {p99:.0f} ms")
    print(f"memory of the server: {before:,.0f} MB before, {after:,.0f} MB after")


if __name__ == "__main__":
    main()
