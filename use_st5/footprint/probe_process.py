"""A model in a process of its own, asked for one measurement after the other."""

from __future__ import annotations

import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from use_st5.footprint.record import Visit

if TYPE_CHECKING:
    from use_st5.footprint.probe import Probe

_SERVER = "from use_st5.footprint.probe_process import serve; serve()"


class ProbeProcess:
    """A process that holds one model and measures it on demand.

    The process starts in the background, so that several can start at a time; `facts` waits for it.

    Args:
        name: The model's name, for messages.
        folder: Its folder.
        device: "cpu" or "gpu".
        threads: Threads that TensorFlow may use.
        batch_size: Sentences in one call of the model.
    """

    def __init__(
        self, name: str, folder: Path, *, device: str, threads: int, batch_size: int
    ) -> None:
        self._name = name
        options = {"device": device, "threads": threads, "batch_size": batch_size}
        count = str(threads)
        environment = {
            **os.environ,
            "OMP_NUM_THREADS": count,
            "TF_CPP_MIN_LOG_LEVEL": "3",
            # What this process can import, the other one can, wherever it came from.
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        }
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (`close` closes it)
        self._process = subprocess.Popen(
            [sys.executable, "-c", _SERVER, json.dumps({"folder": str(folder), **options})],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            encoding="utf-8",
            env=environment,
        )
        self._questions = cast(IO[str], self._process.stdin)
        self._answers = cast(IO[str], self._process.stdout)

    def facts(self) -> dict[str, Any]:
        """The first answer: "parameter_bytes", "gpu" (its name, or None) and "versions".

        Raises:
            ValueError: The model cannot be loaded, or there is no such device.
        """
        return self._answer("loading it")

    def visit(self, length: int) -> tuple[int, Visit]:
        """Measures texts of `length` words once; gives their ids' number and the figures.

        Raises:
            ValueError: The measurement failed; nothing more can be asked.
        """
        what = f"texts of {length} words"
        try:
            self._questions.write(f"{length}\n")
            self._questions.flush()
        except OSError as error:
            raise self._death(what) from error
        answer = self._answer(what)
        return answer["tokens"], Visit(**answer["visit"])

    def close(self) -> None:
        """Ends the process."""
        self._process.kill()
        self._process.communicate()
        self._errors.close()

    def _answer(self, what: str) -> dict[str, Any]:
        line = self._answers.readline()
        if not line:
            raise self._death(what)
        answer = json.loads(line)
        if "error" in answer:
            raise ValueError(f"{self._name}, {what}: {answer['error']}")
        return answer

    def _death(self, what: str) -> ValueError:
        code = self._process.wait()
        self._errors.seek(0)
        said = self._errors.read().decode(errors="replace").strip().splitlines()
        reason = f"its process ended with code {code}"
        if code < 0:
            reason = f"its process was ended by signal {-code}; memory may have run out"
        return ValueError(f"{self._name}, {what}: {reason}{f' ({said[-1]})' if said else ''}")


def serve() -> None:
    """The other end of a `ProbeProcess`: says what the model is, then measures on demand.

    Its one argument is JSON, the options of `_open`. It answers each line of standard input, a
    length, with one line of JSON, until standard input ends.
    """
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
    from use_st5.footprint.probe import Probe

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
