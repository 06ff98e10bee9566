"""How fast `encode` is against an earlier commit, both in one run by turns.

    python benchmarks/against_commit.py COMMIT [MODEL ...]

Each side is a process of its own with its own checkout and its own bundled models, on one thread.
They encode the same sentences by turns; printed is old time / new time, above 1 where the newer is
faster: the median of the rounds, and the least and the largest.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROUNDS = 11
# Sentences in a call, and calls in a round.
SETTINGS = {"one sentence": (1, 200), "a batch of 128": (128, 8)}

WORKER = """
import sys, time
import tensorflow as tf
tf.config.threading.set_intra_op_parallelism_threads(1)
tf.config.threading.set_inter_op_parallelism_threads(1)
import use_st5
encoder = use_st5.load(sys.argv[1])
words = "the old man walks his dog along the river while it rains in Lisbon".split()
sentences = [" ".join(words[i % 7 : i % 7 + 3 + i % 8]) + f" {i}" for i in range(128)]
for size in (1, 128):
    encoder.encode(sentences[:size])
print("ready", flush=True)
for line in sys.stdin:
    size, calls = map(int, line.split())
    start = time.perf_counter()
    for _ in range(calls):
        encoder.encode(sentences[:size])
    print(time.perf_counter() - start, flush=True)
"""


def worker(checkout: Path, model: str) -> subprocess.Popen[str]:
    """A process that loads a model with the code of a checkout and waits for settings."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.fspath(checkout),
        "CUDA_VISIBLE_DEVICES": "-1",
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }
    process = subprocess.Popen(
        [sys.executable, "-c", WORKER, model],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=checkout,
        env=environment,
    )
    if process.stdout.readline().strip() != "ready":
        sys.exit(f"{checkout}: the model {model} could not be loaded")
    return process


def seconds(process: subprocess.Popen[str], size: int, calls: int) -> float:
    """What so many calls took."""
    process.stdin.write(f"{size} {calls}\n")
    process.stdin.flush()
    return float(process.stdout.readline())


def compare(old: Path, model: str) -> None:
    """Prints the ratios of a model."""
    sides = [worker(old, model), worker(ROOT, model)]
    for name, (size, calls) in SETTINGS.items():
        rounds = ([seconds(side, size, calls) for side in sides] for _ in range(ROUNDS))
        ratios = sorted(before / after for before, after in rounds)
        middle = statistics.median(ratios)
        print(f"{model}, {name}: {middle:.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})", flush=True)
    for side in sides:
        side.communicate()


def main(commit: str, models: list[str]) -> None:
    """Compares this checkout with a commit."""
    with tempfile.TemporaryDirectory(prefix="use_st5_") as scratch:
        old = Path(scratch, "old")
        git = ["git", "-C", os.fspath(ROOT), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", os.fspath(old), commit], check=True)
        try:
            for model in models:
                compare(old, model)
        finally:
            subprocess.run([*git, "remove", "--force", os.fspath(old)], check=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:] or ["use_dan_en", "use_transformer_en"])
