"""How near are the vectors of `onnx-int8` to those of `onnx`?

    python -m benchmarks.int8_cosines DATA use_dan_en st5_mini_en [--count 10000]

DATA holds SentEval's MR and SUBJ; `--count` evenly spaced sentences of them are encoded. For each
model the lowest and the mean cosine are printed, and the number of cosines below 0.999.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import use_st5
from use_st5.data.data_folder import DataFolder
from use_st5.encode.similarity import cosine
from use_st5.evaluation.classification import MR, SUBJ


def main() -> None:
    """Reads the arguments and prints a row for each model."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, help="folder of the data")
    parser.add_argument("models", nargs="+", help="names of bundled models or folders")
    parser.add_argument("--count", type=int, default=10_000, help="number of sentences")
    arguments = parser.parse_args()
    data = DataFolder(arguments.data)
    texts = [text for each in (MR, SUBJ) for text in each.read_part(data, "train").columns[0]]
    sample = [texts[place] for place in np.linspace(0, len(texts) - 1, arguments.count, dtype=int)]
    print("lowest   mean     below 0.999")
    for name in arguments.models:
        exact, rounded = (
            use_st5.load(name, backend=backend).encode(sample, on_truncation="ignore")
            for backend in ("onnx", "onnx-int8")
        )
        cosines = cosine(exact, rounded)
        print(
            f"{cosines.min():.5f}  {cosines.mean():.5f}  {(cosines < 0.999).sum()}  {name}",
            flush=True,
        )


if __name__ == "__main__":
    main()
