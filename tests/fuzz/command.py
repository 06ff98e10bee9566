"""Run in a fresh process: one command of use-st5, perhaps with a toy in the place of a model.

usage: python -m tests.fuzz.command SETUP ARGUMENT…; the ARGUMENTs are those of use-st5. When all is
imported, a byte goes to the first of the descriptors that FUZZ_GATE names, and the command begins
when one comes from the second. FUZZ_PAUSE: the seconds that a toy takes for a call.

What Ctrl-C does before `use_st5.cli.main` runs is not looked at here: while Python itself starts it
prints a traceback, which no code of use_st5 can keep back.
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
    """Vectors of lengths, a moment for each call; its weights are its name."""

    name, identity, dimension = "slow", "v1", 4
    prompts: Mapping[str, str] = MappingProxyType({})
    default_prompt_name = None

    def truncated(self, sentences: list[str]) -> list[int]:
        """None is longer than any limit."""
        return []

    def encode(self, sentences: list[str], **options: Any) -> np.ndarray:
        """float32 `[sentences, 4]`."""
        time.sleep(float(os.environ.get("FUZZ_PAUSE", 0.01)))
        return np.array([[len(text), 1, 2, 3] for text in sentences], np.float32)

    def similarity(self, given: Any, **options: Any) -> np.ndarray:
        """All ones, `[n, n]`."""
        return np.ones((len(given), len(given)), np.float32)


def nothing() -> None:
    """The command as it is, where it does without TensorFlow."""


def tensorflow() -> None:
    """The command as it is; TensorFlow and what else takes long is imported before it begins."""
    from use_st5.cli.models import start_tensorflow

    start_tensorflow()
    import use_st5.convert.checkpoint
    import use_st5.encoder
    import use_st5.export.saved_model
    import use_st5.trainable_encoder  # noqa: F401


def toy_encoder() -> None:
    """`SlowEncoder` for every model, few texts in a chunk."""
    import use_st5
    from use_st5.cli import embed, models

    use_st5.load = lambda name, backend: SlowEncoder()
    models.start_tensorflow = lambda: None
    embed._CHUNK_ROWS = 16


def toy_tasks() -> None:
    """Four tasks on the lines of a file for `evaluate`, each in chunks."""
    from tests.evaluation.toys import words_task
    from use_st5 import vector_store
    from use_st5.evaluation import registry
    from use_st5.evaluation.task import EvaluationTask, TaskContext, TaskResult

    def slow(name: str, context: TaskContext) -> TaskResult:
        texts = [f"{name} {number}" for number in range(40)]
        return TaskResult("mean", {"mean": float(context.embed(texts).mean())}, {"texts": 40})

    def task(name: str) -> EvaluationTask:
        return words_task(name, score=lambda context, _: slow(name, context))

    names = ("one", "two", "three", "four")
    registry.all_tasks = lambda: {name: task(name) for name in names}
    vector_store._CHUNK = 8


def toy_experiment() -> None:
    """An experiment, in place of a command, trains a toy encoder with the library's own trainer."""
    tensorflow()
    from tests.fuzz import toy_training  # noqa: F401


SETUPS: dict[str, Callable[[], None]] = {
    setup.__name__: setup for setup in (nothing, tensorflow, toy_encoder, toy_tasks, toy_experiment)
}


@contextlib.contextmanager
def native_code_unheard() -> Iterator[None]:
    """Drops what native code writes to standard error within the block.

    TensorFlow writes there when it is imported, whatever its level of logging: in a command, where
    use_st5 keeps it back, not before it, where the SETUPS import it.
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
        if interrupt.__traceback__.tb_next is not None:  # In the command, which lets none out.
            raise
        sys.exit(130)


if __name__ == "__main__":
    main(sys.argv[1:])
