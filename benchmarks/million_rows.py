"""Compares indexes of a million vectors: memory, time to build, time to search.

    pip install "use_st5[search]" sqlite-vec pysqlite3-binary
    python -m benchmarks.million_rows --folder /tmp/million

The vectors are random sums of 48 directions with noise, 384 numbers of length 1; a field has the
values 0 to 9. Each system runs in its own process with one thread. Times are processor time, of
100 queries in one call and of one query; memory is the largest resident size beyond that of the
imports, without pages of mapped files. Recall is the share of the ten nearest rows.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.search_speed import AnyModel

_DIMENSION, _QUERIES, _K = 384, 100, 10
SYSTEMS = ("exact", "binary", "filter", "hnsw", "faiss", "sqlite-vec")


def draw(folder: Path, rows: int) -> None:
    """Writes the vectors and the queries."""
    generator = np.random.default_rng(0)
    directions = generator.standard_normal((48, _DIMENSION), np.float32)
    shape = (rows, _DIMENSION)
    vectors = np.lib.format.open_memmap(folder / "vectors.npy", "w+", np.float32, shape)
    queries = np.empty((_QUERIES, _DIMENSION), np.float32)
    for start in [*range(0, rows, 10_000), None]:
        part = queries if start is None else vectors[start : start + 10_000]
        block = generator.standard_normal((len(part), 48), np.float32) @ directions
        block += 2 * generator.standard_normal(block.shape, np.float32)
        part[:] = block / np.linalg.norm(block, axis=1, keepdims=True)
    np.save(folder / "queries.npy", queries)


def memory() -> float:
    """Anonymous memory of this process now, in MB."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("RssAnon:")[2].split()[0]) / 1000


def index_of_ours(kind: str, folder: Path, vectors: np.ndarray) -> Callable:
    """Builds an index of use_st5; returns its search."""
    from use_st5.search import VectorIndex

    is_filtered = kind == "filter"
    VectorIndex.build(
        folder / kind,
        vectors,
        encoder=AnyModel(),
        fields={"part": np.arange(len(vectors)) % 10} if is_filtered else None,
        kind="exact" if is_filtered else kind,
    )
    index = VectorIndex(folder / kind)
    where = "part == 3" if is_filtered else None
    return lambda queries: index.search_vectors(queries, k=_K, where=where)[1]


def faiss_flat(vectors: np.ndarray) -> Callable:
    """Builds FAISS's exact index; returns its search."""
    import faiss

    faiss.omp_set_num_threads(1)
    index = faiss.IndexFlatIP(_DIMENSION)
    for start in range(0, len(vectors), 10_000):
        index.add(vectors[start : start + 10_000])
    return lambda queries: index.search(queries, _K)[1]


def sqlite_vec(folder: Path, vectors: np.ndarray) -> Callable:
    """Builds a table of sqlite-vec; returns its search."""
    import pysqlite3  # Many builds of Python have a sqlite3 that loads no extensions.
    import sqlite_vec

    database = pysqlite3.connect(folder / "vectors.db")
    database.enable_load_extension(True)
    sqlite_vec.load(database)
    form = f"embedding float[{_DIMENSION}] distance_metric=cosine"
    database.execute(f"create virtual table rows using vec0({form})")
    numbered = ((row, vector.tobytes()) for row, vector in enumerate(vectors))
    database.executemany("insert into rows(rowid, embedding) values (?, ?)", numbered)
    database.commit()
    find = f"select rowid from rows where embedding match ? and k = {_K} order by distance"
    return lambda queries: np.array(
        [[row for (row,) in database.execute(find, [query.tobytes()])] for query in queries]
    )


def measure(system: str, folder: Path) -> None:
    """Builds one index, searches, and prints one line."""
    vectors = np.load(folder / "vectors.npy", mmap_mode="r")
    queries, before = np.load(folder / "queries.npy"), memory()
    start = time.process_time()
    if system == "faiss":
        search = faiss_flat(vectors)
    elif system == "sqlite-vec":
        search = sqlite_vec(folder, vectors)
    else:
        search = index_of_ours(system, folder, vectors)
    built = time.process_time()
    rows = search(queries)
    many = time.process_time() - built
    times = []
    for query in queries[:5]:
        begun = time.process_time()
        search(query[None])
        times.append(time.process_time() - begun)
    if system == "exact":
        np.save(folder / "true.npy", rows)
    true = np.load(folder / "true.npy")
    recall = np.mean([len({*a} & {*b}) / _K for a, b in zip(rows, true, strict=True)])
    print(
        f"{system}: built in {built - start:.1f} s, {_QUERIES} queries {many:.2f} s, one "
        f"{1e3 * np.median(times):.0f} ms, memory {memory() - before:.0f} MB, recall "
        f"{'-' if system == 'filter' else f'{recall:.3f}'}",
        flush=True,
    )


def main() -> None:
    """Reads the arguments, and starts a process for each system."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, required=True, help="a new folder, some 8 GB")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--systems", default=",".join(SYSTEMS), help="exact comes first")
    parser.add_argument("--measure", choices=SYSTEMS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        measure(arguments.measure, arguments.folder)
        return
    arguments.folder.mkdir()
    try:
        draw(arguments.folder, arguments.rows)
        threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        for system in arguments.systems.split(","):
            command = [sys.executable, "-m", "benchmarks.million_rows", "--measure", system]
            command += ["--folder", str(arguments.folder)]
            subprocess.run(command, check=True, env={**os.environ, **threads})
    finally:
        shutil.rmtree(arguments.folder)


if __name__ == "__main__":
    main()
