"""TensorFlow in forked processes: an error in place of a hang."""

from __future__ import annotations

import os

# The process in which a model was first loaded; a forked child inherits the number.
_started_in: int | None = None


def refuse_after_fork() -> None:
    """Call before TensorFlow loads or runs a model.

    TensorFlow's threads do not exist in a forked child, where the first operation waits for them
    for ever.

    Raises:
        RuntimeError: A model was loaded before this process was forked.
    """
    global _started_in
    if _started_in is None:
        _started_in = os.getpid()
    elif _started_in != os.getpid():
        raise RuntimeError(
            f"Expected a process of its own for TensorFlow, found a fork of process {_started_in}, "
            "in which a model had been loaded: TensorFlow would hang here. Start the process by "
            'multiprocessing.get_context("spawn"), or load models after the fork alone.'
        )
