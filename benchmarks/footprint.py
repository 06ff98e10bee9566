"""Measures the costs of a model other than its speed in bulk: start-up, latency, disk and memory.

    python benchmarks/footprint.py [MODEL]

MODEL is the name of a bundled model or a folder. Every row is measured in fresh processes; times
are medians. Other load on the machine changes them: compare only numbers of the same run.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import use_st5

ROOT = Path(__file__).resolve().parents[1]
RUNS = 3
CALLS = 200
CORPUS = (1_000, 100_000)


def main() -> None:
    """Reads the arguments, prints a table in Markdown; `--measure` is the child's part."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", nargs="?", default="use_dan_en", help="bundled name or folder")
    parser.add_argument("--measure", choices=MEASURES, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(MEASURES[arguments.measure](arguments.model))
        return
    print("| cost | |\n|---|---|")
    for title in MEASURES:
        print(f"| {title} | {in_fresh_processes(title, arguments.model):,.2f} |", flush=True)


def in_fresh_processes(title: str, model: str) -> float:
    """Returns the median of the results of `RUNS` child processes."""
    command = [sys.executable, __file__, model, "--measure", title]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"}
    results = [
        subprocess.run(
            command,
            check=True,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ).stdout
        for _ in range(RUNS)
    ]
    return statistics.median(float(text.splitlines()[-1]) for text in results)


def sentences(number: int) -> list[str]:
    """Returns different sentences of 12 words: a number and 11 words of the LICENSE."""
    words = (ROOT / "LICENSE").read_text(encoding="utf-8").split()
    starts = (i % (len(words) - 11) for i in range(number))
    return [f"{i} " + " ".join(words[at : at + 11]) for i, at in enumerate(starts)]


def import_tensorflow(model: str) -> float:
    """Seconds that `import tensorflow` takes, the floor of every start."""
    del model
    start = time.perf_counter()
    import tensorflow  # noqa: F401

    return time.perf_counter() - start


def first_vector(model: str) -> float:
    """Seconds from nothing imported to the first vector."""
    start = time.perf_counter()
    use_st5.load(model).encode("How old are you?")
    return time.perf_counter() - start


def latency(model: str) -> float:
    """Median milliseconds of `encode` on one sentence, after a warm-up."""
    encoder = use_st5.load(model)
    times = []
    for text in sentences(2 * CALLS):
        start = time.perf_counter()
        encoder.encode(text)
        times.append(time.perf_counter() - start)
    return 1e3 * statistics.median(times[CALLS:])


def on_disk(model: str) -> float:
    """Megabytes of the model's folder."""
    folder = use_st5.load(model).folder
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6


def peak_memory(model: str, number: int) -> float:
    """Peak memory in MB of a process that encodes `number` sentences, the sentences included."""
    import resource

    use_st5.load(model).encode(sentences(number))
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


MEASURES = {
    "import tensorflow, seconds": import_tensorflow,
    "import, load and first vector, seconds": first_vector,
    "one sentence, p50 milliseconds": latency,
    "on disk, MB": on_disk,
    **{
        f"peak memory encoding {number:,} sentences, MB": lambda model, number=number: peak_memory(
            model, number
        )
        for number in CORPUS
    },
}


if __name__ == "__main__":
    main()
