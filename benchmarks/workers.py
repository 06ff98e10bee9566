"""`encode` in one process and in several: texts per second.

    python -m benchmarks.workers sentences.txt --model use_transformer_en --backend onnx-int8
    OMP_NUM_THREADS=1 python -m benchmarks.workers sentences.txt --texts 20000 --workers 1 2

The lines of the file are repeated up to the number of texts. The time includes the start of the
processes. The numbers of workers are measured by turns; the best round of each number counts.
"""

from __future__ import annotations

import argparse
import itertools
import time
from pathlib import Path

import use_st5


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("lines", type=Path)
    parser.add_argument("--model", default="use_dan_en")
    parser.add_argument("--backend", default="tensorflow")
    parser.add_argument("--texts", type=int, default=100_000)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=2)
    args = parser.parse_args()
    lines = [line for line in args.lines.read_text(encoding="utf-8").splitlines() if line.strip()]
    texts = [*itertools.islice(itertools.cycle(lines), args.texts)]
    encoder = use_st5.load(args.model, backend=args.backend)
    encoder.encode(texts[:1000], on_truncation="ignore")
    seconds: dict[int, list[float]] = {workers: [] for workers in args.workers}
    for _ in range(args.rounds):
        for workers, times in seconds.items():
            start = time.perf_counter()
            encoder.encode(texts, workers=workers, on_truncation="ignore", show_progress=False)
            times.append(time.perf_counter() - start)
    first = min(seconds[args.workers[0]])
    for workers, times in seconds.items():
        best = min(times)
        print(
            f"{args.model}, {args.backend}, workers={workers}: {len(texts) / best:,.0f} texts/s "
            f"({first / best:.2f})"
        )


if __name__ == "__main__":
    main()
