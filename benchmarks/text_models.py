"""Compares the folders of `use-st5 export --onnx` and `--litert` with `encode` on lines of a file.

    pip install ".[onnx,litert]"
    python -m benchmarks.text_models sentences.txt --models use_dan_en use_transformer_en

The reader of each folder encodes in a fresh process, which imports neither TensorFlow nor use_st5.
Texts are the lines of the file, including bytes that are not UTF-8. A folder of a fixed length is
compared only on texts that it does not cut.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import use_st5
from use_st5.encode.similarity import cosine
from use_st5.export import to_text_model
from use_st5.export.reader import Encoder

_LENGTH = 64
_READ = """
import sys
folder, texts, answer = sys.argv[1:]
sys.path.insert(0, folder)
from reader import Encoder
import numpy
with open(texts, "rb") as file:
    lines = file.read().split(b"\\n")
numpy.save(answer, Encoder().encode(lines))
assert not {"tensorflow", "use_st5"} & set(sys.modules)
"""


def vectors(folder: Path, texts: Path) -> np.ndarray:
    """The vectors that the reader of a folder computes for the lines of a file."""
    answer = folder.with_name("answer.npy")
    subprocess.run([sys.executable, "-c", _READ, folder, texts, answer], check=True)
    return np.asarray(np.load(answer))


def measure(model: str, path: Path, scratch: Path) -> None:
    """Prints a line for each folder that is exported of a model."""
    lines = path.read_bytes().split(b"\n")
    expected = use_st5.load(model).encode(lines, on_truncation="ignore")
    for runtime in ("onnx", "litert"):
        for length, int8 in ((None, False), (_LENGTH, False), (None, True)):
            folder = scratch / "model"
            to_text_model(model, folder, runtime=runtime, length=length, int8=int8)
            mask = np.ones(len(lines), bool)
            if length is not None:
                mask[:] = [len(ids) < length for ids in Encoder(folder).ids(lines)]
            text_vectors = vectors(folder, path)[mask]
            cosines = cosine(expected[mask], text_vectors)
            size = sum(each.stat().st_size for each in folder.rglob("*") if each.is_file())
            print(
                f"{model}, {runtime}, length {length or 'any'}, {'int8' if int8 else 'as stored'}: "
                f"{size / 1e6:.1f} MB, {mask.sum():,} texts, cosine: lowest {cosines.min():.6f}, "
                f"mean {cosines.mean():.6f}; largest difference "
                f"{np.abs(expected[mask] - text_vectors).max():.6f}",
                flush=True,
            )


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("texts", type=Path)
    parser.add_argument("--models", nargs="+", default=["use_dan_en", "use_transformer_en"])
    arguments = parser.parse_args()
    os.environ.pop("PYTHONPATH", None)  # of the fresh processes
    with tempfile.TemporaryDirectory() as scratch:
        for model in arguments.models:
            measure(model, arguments.texts, Path(scratch))


if __name__ == "__main__":
    main()
