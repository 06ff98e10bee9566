"""How fast and how large is a model: cold start, latency, sentences per second, memory.

    python benchmarks/encode.py [MODEL] [--peer PYTHON]          (or: make benchmark)

MODEL is the name of a bundled model or a folder. Each figure is the median of several runs; the
share of the machine that neighbours take moves them all, so compare only what one run printed.
The text is English: pieces of this repository's LICENSE, short (about 12 words) and long (about
100). PYTHON is the interpreter of an environment with sentence-transformers: its StaticEmbedding
(averaged word vectors, as wide and random) reads the same sentences, in a process of its own.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import use_st5

ROOT = Path(__file__).resolve().parents[1]
RUNS = 5
BATCHES = (32, 512)
LENGTHS = {"short": 12, "long": 100}
WORDS = (ROOT / "LICENSE").read_text("utf-8").split()
COLD_START = "import sys, use_st5; use_st5.load(sys.argv[1]).encode(['How old are you?'])"

Encode = Callable[[list[str]], object]


def main() -> None:
    """Reads the arguments, measures, prints tables in Markdown."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", nargs="?", default="use_dan_en", help="bundled name or folder")
    parser.add_argument("--peer", metavar="PYTHON", help="where sentence-transformers is installed")
    parser.add_argument("--as-peer", type=int, metavar="DIMENSION", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.as_peer:
        print_speeds("sentence-transformers StaticEmbedding", static_embedding(arguments.as_peer))
        return

    print("| cold start: import, load, first vector | seconds |\n|---|---|")
    print(f"| use_st5 | {median(lambda: cold_start(arguments.model), runs=3):.1f} |\n")
    encoder = use_st5.load(arguments.model)
    print("| one short sentence | p50 ms |\n|---|---|")
    print(f"| use_st5 | {latency(encoder.encode):.2f} |\n")
    print("| sentences per second | batch | short | long |\n|---|---|---|---|")
    print_speeds("use_st5", lambda batch: lambda texts: encoder.encode(texts, batch_size=batch))
    if arguments.peer:
        sys.stdout.flush()
        command = [arguments.peer, __file__, "--as-peer", str(encoder.dimension)]
        subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    size = sum(file.stat().st_size for file in encoder.folder.rglob("*") if file.is_file())
    print(f"\nOn disk {size / 1e6:.1f} MB; peak memory of this process {peak_memory():.0f} MB.")


def print_speeds(name: str, engine: Callable[[int], Encode]) -> None:
    """Prints a row for each batch size; `engine(batch)` encodes in such batches."""
    for batch in BATCHES:
        speeds = [f"{speed(engine(batch), words):,.0f}" for words in LENGTHS.values()]
        print(f"| {name} | {batch} | {' | '.join(speeds)} |")


def sentences(number: int, *, words: int) -> list[str]:
    """Makes sentences of about `words` words (half to one and a half times), always the same."""
    drawn = random.Random(0)
    made = []
    for _ in range(number):
        length = drawn.randint(words // 2, words * 3 // 2)
        start = drawn.randrange(len(WORDS) - length)
        made.append(" ".join(WORDS[start : start + length]))
    return made


def median(measure: Callable[[], float], *, runs: int = RUNS) -> float:
    """Returns the median of several measurements."""
    return statistics.median(measure() for _ in range(runs))


def cold_start(model: str) -> float:
    """Returns the seconds of a fresh process from its start to its first vector."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", COLD_START, model], check=True, stderr=subprocess.DEVNULL)
    return time.perf_counter() - start


def latency(encode: Encode) -> float:
    """Returns the median milliseconds of one call with one short sentence, after a warm-up."""
    texts = [[text] for text in sentences(220, words=LENGTHS["short"])]
    times = [seconds(encode, text) for text in texts]
    return 1e3 * statistics.median(times[20:])


def speed(encode: Encode, words: int) -> float:
    """Returns sentences per second over a list much longer than a batch, after a warm-up."""
    texts = sentences(100_000 // words, words=words)
    encode(texts)
    return len(texts) / median(lambda: seconds(encode, texts))


def seconds(encode: Encode, texts: list[str]) -> float:
    """Returns how long one call takes."""
    start = time.perf_counter()
    encode(texts)
    return time.perf_counter() - start


def peak_memory() -> float:
    """Returns the largest resident size of this process so far in MB."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def static_embedding(dimension: int) -> Callable[[int], Encode]:
    """Returns the peer, with random vectors for the words of the text."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import StaticEmbedding
    from tokenizers import Tokenizer, models, pre_tokenizers

    vocabulary = {word: number for number, word in enumerate(["[UNK]", *sorted(set(WORDS))])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    static = StaticEmbedding(tokenizer, embedding_dim=dimension)
    peer = SentenceTransformer(modules=[static], device="cpu")
    return lambda batch: lambda texts: peer.encode(texts, batch_size=batch, show_progress_bar=False)


if __name__ == "__main__":
    main()
