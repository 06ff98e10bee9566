"""Serves a `Probe`: answers each line of standard input, a length, with one line of JSON.

`ProbeProcess` starts it; its one argument is JSON.
"""

from __future__ import annotations

import json
import os
import platform
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from use_st5.resources.probe import Probe


def main() -> None:
    """Says what the model is, then measures until standard input ends."""
    # Ctrl-C is for the parent, which then closes standard input.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Whatever libraries print must not come between the answers.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    try:
        probe, facts = _open(**json.loads(sys.argv[1]))
        _send(answers, facts)
        for line in sys.stdin:
            tokens, visit = probe.visit(int(line))
            _send(answers, {"tokens": tokens, "visit": visit._asdict()})
    except Exception as error:
        first_line = (str(error).strip().splitlines() or [""])[0]
        _send(answers, {"error": f"{type(error).__name__}: {first_line}"})


def _open(
    folder: str, *, device: str, threads: int, batch_size: int
) -> tuple[Probe, dict[str, Any]]:
    """The model on its device, and what only this process can know."""
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)
    gpus = tf.config.list_physical_devices("GPU")
    if device == "gpu":
        if not gpus:
            raise ValueError(
                "Expected a GPU, TensorFlow sees none. Measure on the CPU (device cpu), or install "
                'TensorFlow for GPUs: pip install "tensorflow[and-cuda]".'
            )
        tf.config.set_visible_devices(gpus[:1], "GPU")
        # Else the first model would take all of the memory.
        tf.config.experimental.set_memory_growth(gpus[0], True)
    else:
        tf.config.set_visible_devices([], "GPU")
    from use_st5 import __version__
    from use_st5.resources.probe import Probe

    probe = Probe(Path(folder), batch_size=batch_size, gpu=device == "gpu")
    details = tf.config.experimental.get_device_details(gpus[0]) if gpus else {}
    facts = {
        "parameter_bytes": probe.parameter_bytes,
        "gpu": details.get("device_name", "GPU") if gpus else None,
        "versions": {
            "python": platform.python_version(),
            "use_st5": __version__,
            "tensorflow": tf.__version__,
        },
    }
    return probe, facts


def _send(stream: Any, answer: dict[str, Any]) -> None:
    stream.write(json.dumps(answer) + "\n")
    stream.flush()


if __name__ == "__main__":
    main()
