"""Measures the peak memory that one long text adds to that of the loaded model, in this process.

python benchmarks/long_text_memory.py use_dan_en --megabytes 30 --text "a! "
"""

from __future__ import annotations

import argparse
import resource

import use_st5


def main() -> None:
    """Loads a model, encodes a short and then a long text, and prints how the peak grew."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", help="a bundled model's name, or a folder")
    parser.add_argument("--megabytes", type=int, default=30, help="length of the text")
    parser.add_argument("--text", default="a! ", help="what is repeated")
    arguments = parser.parse_args()
    encoder = use_st5.load(arguments.model)
    encoder.encode("a short text")
    before = _peak()
    repeated = arguments.megabytes * 10**6 // len(arguments.text.encode())
    encoder.encode(arguments.text * repeated, on_truncation="ignore")
    print(f"{arguments.model}: {_peak() - before:.0f} MB for a text of {arguments.megabytes} MB")


def _peak() -> float:
    """Peak resident memory so far, in MB; Linux counts kilobytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


if __name__ == "__main__":
    main()
