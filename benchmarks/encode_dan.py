"""Sentences per second of a USE-DAN beside its peers, as ratios out of one run.

    python benchmarks/encode_dan.py [MODEL] [--peer-python PYTHON] [--threads N]

Each engine lives in a process of its own and all are driven in turn, so that a neighbour's load
meets them alike; the ratio is to the first peer that runs. Engines:

    encode   use_st5.load(MODEL).encode, as a user calls it
    graph    what hub.load(MODEL) gives, called batch by batch
    static   sentence-transformers' StaticEmbedding, random vectors of the table's width; skipped
             where PYTHON (this one, or that of --peer-python) has no sentence_transformers
    numpy    lower, split, look up in a dict, average: what no encoder in Python can be much under

The text is made of this repository's LICENSE: about 12 or 100 words a sentence.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

LICENSE = Path(__file__).resolve().parents[1] / "LICENSE"
ENGINES = ("encode", "graph", "static", "numpy")
PEERS = ("static", "numpy")
WORDS = {"short": 12, "long": 100}
BATCH = 128
SENTENCES = {"short": 4096, "long": 512}
ROUNDS = 7
EMBEDDING_DIM = 320

Encode = Callable[[list[str]], object]


def main() -> None:
    """Measures all engines and prints a table in Markdown; serves one engine with --serve."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", nargs="?", default="use_dan_en", help="bundled name or folder")
    parser.add_argument("--peer-python", default=sys.executable, help="Python with the peer")
    parser.add_argument("--threads", type=int, default=1, help="threads of each engine")
    parser.add_argument("--serve", choices=ENGINES, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve(arguments.serve, arguments.model, arguments.threads)
        return
    servers = {}
    for engine in ENGINES:
        python = arguments.peer_python if engine == "static" else sys.executable
        server = Server(python, engine, arguments.model, arguments.threads)
        if server.error:
            print(f"skipped: {engine} ({server.error})", file=sys.stderr)
        else:
            servers[engine] = server
    report(servers)


def report(servers: dict[str, Server]) -> None:
    """Drives the servers in turn and prints medians and ratios."""
    base = next(engine for engine in PEERS if engine in servers)
    print(f"| engine | text | sentences/s | ratio to {base} | one sentence, p50 ms |")
    print("|---|---|---|---|---|")
    for text in WORDS:
        rates: dict[str, list[float]] = collections.defaultdict(list)
        latencies: dict[str, list[float]] = collections.defaultdict(list)
        for _ in range(ROUNDS):
            for engine, server in servers.items():
                answer = server.measure(text)
                rates[engine].append(answer["rate"])
                latencies[engine].append(answer["latency"])
        for engine in servers:
            ratio = statistics.median(
                ours / peer for ours, peer in zip(rates[engine], rates[base], strict=True)
            )
            rate, latency = statistics.median(rates[engine]), statistics.median(latencies[engine])
            print(f"| {engine} | {text} | {rate:,.0f} | {ratio:.2f} | {latency * 1000:.2f} |")


class Server:
    """An engine in its own process; `error` says why it did not start."""

    def __init__(self, python: str, engine: str, model: str, threads: int) -> None:
        count = str(threads)
        limits = {"OMP_NUM_THREADS": count, "OPENBLAS_NUM_THREADS": count, "MKL_NUM_THREADS": count}
        self._process = subprocess.Popen(
            [python, __file__, model, "--threads", count, "--serve", engine],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, **limits, "TF_CPP_MIN_LOG_LEVEL": "3"},
        )
        line = self._process.stdout.readline()
        self.error = json.loads(line)["error"] if line else "the process died"

    def measure(self, text: str) -> dict[str, float]:
        """Sentences per second, and seconds for one sentence, over texts of a kind."""
        self._process.stdin.write(text + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


def serve(engine: str, model: str, threads: int) -> None:
    """Answers each line ("short" or "long") with one measurement."""
    try:
        encode = globals()[f"make_{engine}"](model, threads)
    except ImportError as error:
        print(json.dumps({"error": f"cannot import {error.name}"}), flush=True)
        return
    texts = {kind: list(sentences(kind)) for kind in WORDS}
    for kind in WORDS:  # caches and traces
        encode(texts[kind])
        encode(texts[kind][:1])
    print(json.dumps({"error": ""}), flush=True)
    for line in sys.stdin:
        kind = line.strip()
        start = time.perf_counter()
        encode(texts[kind])
        rate = len(texts[kind]) / (time.perf_counter() - start)
        seconds = []
        for text in texts[kind][:50]:
            start = time.perf_counter()
            encode([text])
            seconds.append(time.perf_counter() - start)
        print(json.dumps({"rate": rate, "latency": statistics.median(seconds)}), flush=True)


def sentences(kind: str) -> Iterator[str]:
    """The same pseudo-random sentences for every engine."""
    words = LICENSE.read_text("utf-8").split()
    draw = random.Random(0)
    for _ in range(SENTENCES[kind]):
        length = max(1, round(draw.gauss(WORDS[kind], WORDS[kind] / 4)))
        start = draw.randrange(len(words) - length)
        yield " ".join(words[start : start + length])


def make_encode(model: str, threads: int) -> Encode:
    """`SentenceEncoder.encode`."""
    limit_tensorflow(threads)
    import use_st5

    encoder = use_st5.load(model)
    return lambda texts: encoder.encode(texts, batch_size=BATCH, show_progress=False)


def make_graph(model: str, threads: int) -> Encode:
    """The SavedModel as `hub.load` gives it."""
    limit_tensorflow(threads)
    import tensorflow as tf

    from use_st5._model_folder import model_folder

    loaded = tf.saved_model.load(str(model_folder(model)))
    return lambda texts: [loaded(batch).numpy() for batch in batches(texts)]


def make_static(_model: str, threads: int) -> Encode:
    """sentence-transformers' averaged word vectors."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import StaticEmbedding
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    torch.set_num_threads(threads)
    tokenizer = Tokenizer(models.WordLevel(vocabulary(), unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    static = StaticEmbedding(tokenizer, embedding_dim=EMBEDDING_DIM)
    model = SentenceTransformer(modules=[static], device="cpu")
    return lambda texts: model.encode(texts, batch_size=BATCH, show_progress_bar=False)


def make_numpy(_model: str, _threads: int) -> Encode:
    """Averaged word vectors without any framework."""
    import numpy as np

    ids = vocabulary()
    table = np.random.default_rng(0).normal(size=(len(ids), EMBEDDING_DIM)).astype(np.float32)

    def encode(texts: list[str]) -> np.ndarray:
        means = np.empty((len(texts), EMBEDDING_DIM), np.float32)
        for row, text in enumerate(texts):
            means[row] = table[[ids.get(word, 0) for word in text.lower().split()]].mean(axis=0)
        return means

    return encode


def vocabulary() -> dict[str, int]:
    """The words of the text and made-up ones, 40,000 together."""
    known = dict.fromkeys(LICENSE.read_text("utf-8").lower().split())
    words = ["[UNK]", *known, *(f"word{i}" for i in range(40_000))][:40_000]
    return {word: index for index, word in enumerate(words)}


def batches(texts: list[str]) -> Iterator[list[str]]:
    """Batches of the size that all engines use."""
    for start in range(0, len(texts), BATCH):
        yield texts[start : start + BATCH]


def limit_tensorflow(threads: int) -> None:
    """Gives TensorFlow as many threads as the others have."""
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)


if __name__ == "__main__":
    main()
