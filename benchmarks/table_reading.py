"""Time and memory from a large file of pairs to the first training step.

    python benchmarks/table_reading.py --rows 1000000

A model is trained for one step on a file of 1,000 rows and on the large file, each in a process of
its own. The difference between the two is the cost of reading, statistics, held-out rows and arrays
of the large file. The processor time is given as well as the time on the clock, since other work on
the machine changes it less.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import resource
import tempfile
import time
from pathlib import Path

import use_st5

_FEW = 1000


def write_pairs(path: Path, rows: int) -> None:
    """Writes questions and answers of 4 to 20 words, from a vocabulary of 20,000 words."""
    rng = random.Random(0)
    words = ["".join(rng.choices("abcdefghijklmnoprstuvwy", k=2 + n % 8)) for n in range(20_000)]
    with path.open("w", encoding="utf-8") as file:
        file.write("anchor\tpositive\n")
        for _ in range(rows):
            texts = (" ".join(rng.choices(words, k=rng.randint(4, 20))) for _ in range(2))
            file.write("\t".join(f"{text.capitalize()}?" for text in texts) + "\n")


def one_step(model: str, rows: int) -> tuple[float, float]:
    """Trains for one step, and returns the seconds on the clock and the processor seconds."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pairs.tsv"
        write_pairs(path, rows)
        start, cpu = time.monotonic(), time.process_time()
        use_st5.train(model, path, Path(folder) / "model", steps=1)
        clock, cpu = time.monotonic() - start, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{rows:,} rows: {clock:.1f} s, processors {cpu:.1f} s, peak {peak:.2f} GB", flush=True)
    return clock, cpu


def main() -> None:
    """Prints time and memory."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of the large file")
    parser.add_argument("--model", default="use_dan_en")
    arguments = parser.parse_args()
    measured = []
    for rows in (_FEW, arguments.rows):
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            measured.append(pool.apply(one_step, (arguments.model, rows)))
    clock, cpu = (large - few for few, large in zip(*measured, strict=True))
    print(f"the large file alone: {clock:.1f} s, processors {cpu:.1f} s")


if __name__ == "__main__":
    main()
