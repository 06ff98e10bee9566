"""Retrieval of long documents: cut, by the mean of their windows, and by their best window.

    python -m benchmarks.long_documents FOLDER --model use_transformer_en

The folder is a set in BEIR's layout.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np

import use_st5
from use_st5.evaluation.retrieval import read_retrieval_set, retrieval_scores
from use_st5.search import VectorIndex


def main() -> None:
    """Prints a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--model", default="use_transformer_en")
    arguments = parser.parse_args()
    encoder = use_st5.load(arguments.model, backend="onnx")
    dataset = read_retrieval_set(arguments.folder)
    ids, texts = list(dataset.corpus), list(dataset.corpus.values())
    windows, owners = encoder.document_windows(texts)
    count = f"{len(encoder.truncated(texts))} of {len(texts)}"
    print(f"{dataset.name}: {count} documents are longer than {encoder.max_length} tokens")
    ways: dict[str, tuple[np.ndarray, np.ndarray | None]] = {
        "cut": (encoder.encode_document(texts, on_truncation="ignore"), None),
        "mean of the windows": (encoder.encode_document(texts, on_truncation="split"), None),
        "best window": (encoder.encode(windows, prompt=""), owners),
    }
    print("| | vectors | nDCG@10 | recall@10 |\n|---|---|---|---|")
    for way, (vectors, rows) in ways.items():
        with tempfile.TemporaryDirectory() as folder:
            index = VectorIndex.build(f"{folder}/i", vectors, encoder=encoder, windows=rows)
            found = index.search(encoder, list(dataset.queries.values()), k=100)
        run = {
            query: {ids[row]: float(score) for score, row in zip(*hits, strict=True)}
            for query, *hits in zip(dataset.queries, *found, strict=True)
        }
        scores = retrieval_scores(dataset.judgements, run)
        figures = (f"{100 * scores[name]:.1f}" for name in ("ndcg@10", "recall@10"))
        print(f"| {way} | {len(vectors):,} |", " | ".join(figures), "|")


if __name__ == "__main__":
    main()
