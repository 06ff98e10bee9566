"""Run in a fresh process: one command of use-st5, perhaps with a toy in place of a model.

usage: python -m tests.fuzz.command SETUP ARGUMENT…; the ARGUMENTs are those of use-st5. After all
imports the process writes a byte to the first descriptor in FUZZ_GATE, and the command begins when
a byte comes from the second. FUZZ_PAUSE: the seconds that a toy takes for a call.

Ctrl-C before `use_st5.cli.main` runs is not tested here: while Python itself starts, it prints a
traceback, which no code of use_st5 can suppress.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np


class SlowEncoder:
    """Makes vectors from the lengths of texts, and pauses at each call; it has no weights."""

    name, identity, dimension = "slow", "v1", 4
    prompts: Mapping[str, str] = MappingProxyType({})
    default_prompt_name = None

    def truncated(self, sentences: list[str]) -> list[int]:
        """Returns no indices, since there is no limit."""
        return []

    def encode(self, sentences: list[str], **options: Any) -> np.ndarray:
        """float32 `[sentences, 4]`."""
        time.sleep(float(os.environ.get("FUZZ_PAUSE", 0.01)))
        return np.array([[len(text), 1, 2, 3] for text in sentences], np.float32)


def tensorflow() -> None:
    """Imports TensorFlow and other slow modules before the command begins."""
    from use_st5.cli.models import start_tensorflow

    start_tensorflow()
    import use_st5.convert.checkpoint
    import use_st5.encode.encoder
    import use_st5.export.saved_model
    import use_st5.trainable_encoder  # noqa: F401


def toy_encoder() -> None:
    """Loads a `SlowEncoder` for every model, and makes chunks of few texts."""
    import use_st5
    from use_st5.cli import embed, models

    use_st5.load = lambda name, backend: SlowEncoder()
    models.start_tensorflow = lambda: None
    embed._CHUNK_ROWS = 16


def toy_tasks() -> None:
    """Gives `evaluate` four tasks that need a file, and that embed their texts in chunks."""
    from tests.evaluation.toys import words_task
    from use_st5.encode import vector_store
    from use_st5.evaluation import task as task_module
    from use_st5.evaluation.task import EvaluationTask, TaskContext, TaskResult

    def slow(name: str, context: TaskContext) -> TaskResult:
        texts = [f"{name} {number}" for number in range(40)]
        return TaskResult("mean", {"mean": float(context.embed(texts).mean())}, {"texts": 40})

    def task(name: str) -> EvaluationTask:
        return words_task(name, score=lambda context, _: slow(name, context))

    names = ("one", "two", "three", "four")
    task_module.all_tasks = lambda: {name: task(name) for name in names}
    vector_store._CHUNK = 8


def toy_experiment() -> None:
    """Makes an experiment the command: it trains a toy encoder with the library's own trainer."""
    tensorflow()
    from tests.fuzz import toy_training  # noqa: F401


SETUPS: dict[str, Callable[[], None]] = {
    setup.__name__: setup for setup in (tensorflow, toy_encoder, toy_tasks, toy_experiment)
}


@contextlib.contextmanager
def native_code_unheard() -> Iterator[None]:
    """Drops what native code writes to standard error within the block.

    TensorFlow writes there when it is imported, at any log level. In a command use_st5 suppresses
    this, but the SETUPS import TensorFlow before the command.
    """
    heard, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(heard, 2)
        os.close(heard)
        os.close(nowhere)


def _run_toy_experiment() -> None:
    from experiments.command import main as run
    from tests.fuzz import toy_training

    run(toy_training.run)


def main(arguments: list[str]) -> None:
    """Sets up and runs the command."""
    # A process started in the background ignores the signal.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with native_code_unheard():
        SETUPS[arguments[0]]()
    from use_st5.cli.main import main as use_st5_main

    command = use_st5_main if arguments[0] != "toy_experiment" else _run_toy_experiment
    sys.argv = ["use-st5", *arguments[1:]]
    ready, go = map(int, os.environ["FUZZ_GATE"].split(","))
    try:
        os.write(ready, b"!")
        os.read(go, 1)
        command()
    except KeyboardInterrupt as interrupt:
        if interrupt.__traceback__.tb_next is not None:  # The command must not raise it.
            raise
        sys.exit(130)


if __name__ == "__main__":
    main(sys.argv[1:])
