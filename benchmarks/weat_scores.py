"""WEAT of exported encoders: effect sizes and p-values of the tests of Caliskan et al. (2017).

    python benchmarks/weat_scores.py use_dan_en --data DATA

DATA holds weat1.jsonl to weat10.jsonl of the sent-bias toolkit, at any depth; where
sent-weat1.jsonl and so on lie there too, the same tests follow on sentences (SEAT, May et al.).
n is the number of texts in each group of targets, d the effect size (ddof 1), p one-sided with ties
counted: exact up to 100 000 partitions (n up to 9), sampled above, where it cannot fall below 1e-5.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from pathlib import Path

import use_st5
from use_st5.bias.weat import run_weat
from use_st5.bias.weat_reader import read_weat
from use_st5.bias.weat_test import WEATTest

FILE = re.compile(r"(sent-)?weat([1-9]|10)")


def main() -> None:
    """Reads the arguments and prints one table per model."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("models", nargs="+", help="names of bundled models, or folders")
    parser.add_argument("--data", type=Path, required=True, help="folder of the tests")
    arguments = parser.parse_args()
    tests = find_tests(arguments.data)
    if not tests:
        parser.error(f"{arguments.data} has no weat1.jsonl to weat10.jsonl, at any depth")
    for name in arguments.models:
        print_table(name, use_st5.load(name), tests)


def find_tests(folder: Path) -> list[WEATTest]:
    """Reads the tests below a folder: words first, then sentences, each by number."""
    found = [(FILE.fullmatch(path.stem), path) for path in folder.rglob("*.jsonl")]
    keys = [(bool(match[1]), int(match[2]), path) for match, path in found if match]
    return [read_weat(path) for *_, path in sorted(keys)]


def print_table(name: str, encoder: use_st5.SentenceEncoder, tests: Sequence[WEATTest]) -> None:
    """Prints one model's scores."""
    print(f"\n{name}\n| test | targets | attributes | n | d | p |")
    print("|---|---|---|---|---|---|")
    for test in tests:
        result = run_weat(encoder.encode, test)
        x, y, a, b = test.categories
        numbers = f"{len(test.x)} | {result.effect_size:.2f} | {result.p_value:.2g}"
        print(f"| {test.name} | {x} / {y} | {a} / {b} | {numbers} |")


if __name__ == "__main__":
    main()
