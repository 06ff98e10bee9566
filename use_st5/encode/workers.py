"""Batches of texts encoded in several processes, in order."""

from __future__ import annotations

import collections
import multiprocessing
import os
import pickle
import signal
from collections.abc import Generator, Iterable
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any

import numpy as np

# The number of batches per process that are sent before their turn.
_AHEAD = 8
_THREADS = ("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS", "OMP_NUM_THREADS")
# The encoder of a process that `encode_in_workers` started.
_encoder: Any = None


def encode_in_workers(
    encoder: Any, batches: Iterable[list[str]], workers: int
) -> Generator[np.ndarray]:
    """Yields the vectors of each batch, in the order of the batches.

    Each process loads the model from its folder. The processes end with the iterator, also when it
    is closed early or by Ctrl-C. An error in one of them is raised here.
    """
    pool = ProcessPoolExecutor(
        workers,
        multiprocessing.get_context("spawn"),
        initializer=_start,
        initargs=(pickle.dumps(encoder),),
    )
    unset_names = [name for name in _THREADS if name not in os.environ]
    results: collections.deque[Future[np.ndarray]] = collections.deque()
    try:
        os.environ.update(dict.fromkeys(unset_names, str(max(1, (os.cpu_count() or 1) // workers))))
        try:
            for _ in range(workers):  # This starts the processes, each with its share of the cores.
                pool.submit(os.getpid)
        finally:
            for name in unset_names:
                del os.environ[name]
        for batch in batches:
            results.append(pool.submit(_encode, batch))
            if len(results) == _AHEAD * workers:
                yield results.popleft().result()
        while results:
            yield results.popleft().result()
    except BrokenProcessPool as error:
        advice = 'Use fewer workers; a script calls encode below `if __name__ == "__main__":`'
        raise RuntimeError(f"A process of encode(workers=…) ended. {advice}.") from error
    except BaseException:  # Ctrl-C and `close` do not wait for the batches that are being encoded.
        for process in [*pool._processes.values()]:
            process.kill()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _start(pickled: bytes) -> None:
    global _encoder
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent, which ends this.
    _encoder = pickle.loads(pickled)


def _encode(texts: list[str]) -> np.ndarray:
    return _encoder._run(texts)
