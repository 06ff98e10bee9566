"""Batches of texts encoded in several processes, in order."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import traceback
from collections.abc import Generator, Iterable, Iterator
from multiprocessing.connection import Connection, wait
from typing import Any

import numpy as np

# The number of finished batches per process that may wait for an earlier batch.
_AHEAD = 8
_SECONDS_TO_END = 5.0
_THREADS = ("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS", "OMP_NUM_THREADS")


def check_workers(workers: int) -> None:
    """Checks the number of processes.

    Raises:
        TypeError: It is no int.
        ValueError: It is below 1.
    """
    if isinstance(workers, bool) or not isinstance(workers, int):
        raise TypeError(f"Expected workers as an int, received {workers!r}.")
    if workers < 1:
        raise ValueError(f"Expected workers of at least 1, received {workers}.")


def encode_in_workers(
    encoder: Any, batches: Iterable[list[str]], workers: int
) -> Generator[np.ndarray]:
    """Yields the vectors of each batch, in the order of the batches.

    Each process loads the model from its folder and uses its share of the processor's cores. The
    processes end with the iterator, also when it is closed early or by Ctrl-C.

    Args:
        encoder: A `SentenceEncoder`; it is pickled.
        batches: The texts of each batch.
        workers: The number of processes.

    Raises:
        RuntimeError: A process failed or ended; the message gives its error or exit code.
        ValueError: The encoder's weights in memory differ from those of its folder.
    """
    pickled = pickle.dumps(encoder)
    context = multiprocessing.get_context("spawn")
    pipes: dict[Connection, Any] = {}
    try:
        with _share_of_cores(workers):
            for _ in range(workers):
                parent_end, child_end = context.Pipe()
                process = context.Process(target=_work, args=(child_end, pickled), daemon=True)
                process.start()
                child_end.close()
                pipes[parent_end] = process
        yield from _in_order(pipes, enumerate(batches))
    finally:
        _end(pipes)


@contextlib.contextmanager
def _share_of_cores(workers: int) -> Iterator[None]:
    """Gives each process that starts in the block its share of the processor's cores.

    The environment variables must be set before the start, because NumPy makes its threads when it
    is imported. If threads of several processes wait for each other on the same cores, they take
    many times as long.
    """
    threads = str(max(1, (os.cpu_count() or 1) // workers))
    unset_names = [name for name in _THREADS if name not in os.environ]
    os.environ.update(dict.fromkeys(unset_names, threads))
    try:
        yield
    finally:
        for name in unset_names:
            del os.environ[name]


def _in_order(
    pipes: dict[Connection, Any], jobs: Iterator[tuple[int, list[str]]]
) -> Iterator[np.ndarray]:
    """Yields the vectors of all batches in order; each process has one batch at a time.

    A second batch could fill the pipe while the process writes its vectors: both sides would wait.
    """
    idle, busy = [*pipes], set[Connection]()
    results: dict[int, np.ndarray] = {}
    next_number = 0
    while True:
        # A slow batch must not let the others run ahead: their vectors wait in memory.
        while idle and len(results) < _AHEAD * len(pipes) and (job := next(jobs, None)):
            pipe = idle.pop()
            _send(pipe, pipes[pipe], job)
            busy.add(pipe)
        if not busy:
            return
        ready = {*wait([*busy])}
        for pipe in [each for each in busy if each in ready]:
            number, vectors = _received(pipe, pipes[pipe])
            results[number] = vectors
            busy.remove(pipe)
            idle.append(pipe)
        while next_number in results:
            yield results.pop(next_number)
            next_number += 1


def _send(pipe: Connection, process: Any, job: tuple[int, list[str]]) -> None:
    try:
        pipe.send(job)
    except OSError as error:
        raise _ended(process) from error


def _received(pipe: Any, process: Any) -> tuple[int, np.ndarray]:
    """The number and the vectors of a batch; a process that failed or ended is an error."""
    try:
        number, vectors = pipe.recv()
    except (EOFError, OSError) as error:
        raise _ended(process) from error
    if isinstance(vectors, str):
        raise RuntimeError(f"A process of encode(workers=…) failed:\n{vectors}")
    return number, vectors


def _ended(process: Any) -> RuntimeError:
    process.join(_SECONDS_TO_END)
    return RuntimeError(
        f"A process of encode(workers=…) ended with exit code {process.exitcode}. If it was killed "
        "(-9), use fewer workers: each one loads the model. A script must call encode below "
        '`if __name__ == "__main__":`, because each process imports the script.'
    )


def _end(pipes: dict[Connection, Any]) -> None:
    for pipe, process in pipes.items():
        pipe.close()
        process.terminate()
    for process in pipes.values():
        process.join(_SECONDS_TO_END)
        if process.is_alive():
            process.kill()


def _work(pipe: Connection, pickled: bytes) -> None:
    """Runs in a process: loads the encoder, and encodes until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent, which ends this.
    number = -1
    try:
        encoder = pickle.loads(pickled)
        while True:
            number, texts = pipe.recv()
            pipe.send((number, encoder._run(texts)))
    except EOFError:
        return
    except Exception:
        with contextlib.suppress(OSError):
            pipe.send((number, traceback.format_exc()))
