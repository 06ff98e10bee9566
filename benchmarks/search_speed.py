"""Compares search speed with sentence-transformers, and measures the recall of each kind of index.

    pip install "use_st5[search]" sentence-transformers threadpoolctl
    use-st5 embed sentences.txt -o vectors.npy
    python -m benchmarks.search_speed vectors.npy
    python -m benchmarks.search_speed --rows 1000000 --kinds exact

The first rows of the file are the queries, the others are the corpus; --rows takes random vectors
of length 1 instead. Both run with one thread, in one process and by turns. Times are processor
time; the ratio is sentence-transformers' time to ours. Both compare by the dot product and find ten
rows.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

_K = 10
_QUERIES = (1, 8, 100, 1000)
_REPEATS = 3


class AnyModel:
    """Stands for the encoder that an index needs; the vectors are given."""

    name = "any"
    identity = "any"

    def encode(self, texts: list[str]) -> np.ndarray:
        """Raises an error, because this class encodes nothing."""
        raise ValueError(f"Expected vectors alone, received {len(texts)} texts.")


def seconds(call: Callable[[], object]) -> float:
    """The processor time of a call."""
    start = time.process_time()
    call()
    return time.process_time() - start


def beside_sentence_transformers(queries: np.ndarray, corpus: np.ndarray) -> None:
    """Prints both times for some numbers of queries, and whether both find the same."""
    import torch
    from sentence_transformers.util import dot_score, semantic_search

    from use_st5.search import exact_search

    torch.set_num_threads(1)
    rows = torch.from_numpy(corpus)
    for count in _QUERIES:
        some = queries[:count]
        ours = partial(exact_search, some, corpus, k=_K)
        tensor = torch.from_numpy(some)
        theirs = partial(semantic_search, tensor, rows, top_k=_K, score_function=dot_score)
        agreement = np.mean(ours()[1] == [[hit["corpus_id"] for hit in line] for line in theirs()])
        times = [(seconds(ours), seconds(theirs)) for _ in range(_REPEATS)]
        our_times, their_times = np.array(times).T
        print(
            f"{count} queries among {len(corpus):,}: use_st5 {1e3 * np.median(our_times):.1f} ms, "
            f"sentence-transformers {1e3 * np.median(their_times):.1f} ms, ratio "
            f"{np.median(their_times / our_times):.2f}; {100 * agreement:.2f} % of the rows are "
            "the same",
            flush=True,
        )


def of_each_kind(queries: np.ndarray, corpus: np.ndarray, kinds: list[str], folder: Path) -> None:
    """Prints recall and time of each kind of index, by the breadth of its search."""
    from use_st5.search import VectorIndex, exact_search

    _, true = exact_search(queries, corpus, k=_K)
    for kind in kinds:
        start = time.process_time()
        index = VectorIndex.build(folder / kind, corpus, encoder=AnyModel(), kind=kind)
        build_time = time.process_time() - start
        for breadth in (None, 1, 4, 64) if kind != "exact" else (None,):
            rows = index.search_vectors(queries, k=_K, breadth=breadth)[1]
            recall = np.mean([len({*a} & {*b}) / _K for a, b in zip(rows, true, strict=True)])
            search = partial(index.search_vectors, k=_K, breadth=breadth)
            batch_time = seconds(partial(search, queries))
            query_time = min(seconds(partial(search, queries[:1])) for _ in range(_REPEATS))
            print(
                f"{kind}, built in {build_time:.1f} s, breadth {breadth or 'default'}: recall "
                f"{recall:.4f}, {len(queries)} queries {1e3 * batch_time:.0f} ms, one "
                f"{1e3 * query_time:.1f} ms",
                flush=True,
            )


def main() -> None:
    """Reads the arguments, measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("vectors", type=Path, nargs="?", help="a .npy file of use-st5 embed")
    parser.add_argument("--rows", type=int, help="random vectors of 512 numbers instead")
    parser.add_argument("--kinds", default="exact,hnsw", help="which indexes to build")
    arguments = parser.parse_args()
    if (arguments.vectors is None) == (arguments.rows is None):
        parser.error("give a file of vectors or --rows")

    from threadpoolctl import threadpool_limits

    from use_st5.encode.similarity import unit_rows

    if arguments.rows is None:
        vectors = unit_rows(np.load(arguments.vectors)).astype(np.float32)
    else:
        size = (arguments.rows + max(_QUERIES), 512)
        vectors = np.random.default_rng(0).standard_normal(size, np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    queries, corpus = vectors[: max(_QUERIES)], vectors[max(_QUERIES) :]
    with tempfile.TemporaryDirectory() as folder, threadpool_limits(1):
        beside_sentence_transformers(queries, corpus)
        of_each_kind(queries, corpus, arguments.kinds.split(","), Path(folder))


if __name__ == "__main__":
    main()
