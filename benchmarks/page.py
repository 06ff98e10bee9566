"""Compares the vectors of `use-st5 export --web` and of `encode` on the dev set of STS Benchmark.

    python -m benchmarks.page DATA

DATA is the folder of the unpacked data. Needs Node 18 or newer.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import tempfile
from pathlib import Path
from typing import get_args

import numpy as np
from scipy.stats import spearmanr

import use_st5
from use_st5.export.web import Precision, to_web

_DRIVER = Path(__file__).parents[1] / "tests" / "export" / "page_driver.cjs"


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--model", default="use_dan_en")
    arguments = parser.parse_args()
    path = arguments.data / "sts_raw" / "stsbenchmark" / "sts-dev.csv"
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    scores = [float(row[4]) for row in rows]
    texts = [row[place] for place in (5, 6) for row in rows]
    expected = use_st5.load(arguments.model, backend="onnx").encode(texts)
    for precision in get_args(Precision):
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch, "page")
            to_web(arguments.model, folder, precision=precision)
            size = sum(file.stat().st_size for file in folder.iterdir())
            page_vectors = vectors(folder, texts, Path(scratch))
        report(f"{precision}: {size / 1e6:.1f} MB", page_vectors, expected, scores)


def vectors(folder: Path, texts: list[str], scratch: Path) -> np.ndarray:
    """The vectors that a page's scripts compute for texts in Node, float32 `[texts, dimension]`."""
    texts_path, answer_path = scratch / "given.json", scratch / "answer.json"
    texts_path.write_text(json.dumps(texts), encoding="utf-8")
    subprocess.run(["node", _DRIVER, folder, texts_path, answer_path, "vectors"], check=True)
    return np.array(json.loads(answer_path.read_text(encoding="utf-8")), np.float32)


def report(name: str, found: np.ndarray, expected: np.ndarray, scores: list[float]) -> None:
    """Prints a line: how far the vectors and the similarities of the pairs are from `encode`."""
    cosines = np.einsum("td,td->t", found, expected)
    similarities, expected_similarities = (
        np.einsum("td,td->t", *np.split(each, 2)) for each in (found, expected)
    )
    change = np.abs(similarities - expected_similarities)
    spearman, before = (
        100 * spearmanr(each, scores)[0] for each in (similarities, expected_similarities)
    )
    print(
        f"{name}, largest difference {np.abs(found - expected).max():.4f}, cosine: mean "
        f"{cosines.mean():.4f}, lowest {cosines.min():.4f}, change of a similarity: mean "
        f"{change.mean():.5f}, largest {change.max():.5f}, Spearman {spearman:.2f} "
        f"(encode: {before:.2f})",
        flush=True,
    )


if __name__ == "__main__":
    main()
