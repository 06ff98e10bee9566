"""A model in a process of its own, asked for one measurement after the other."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from use_st5.resources.resource_point import Visit

_SERVER = "use_st5.resources._probe_server"


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
            [sys.executable, "-m", _SERVER, json.dumps({"folder": str(folder), **options})],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            encoding="utf-8",
            env=environment,
        )

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
            self._process.stdin.write(f"{length}\n")
            self._process.stdin.flush()
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
        line = self._process.stdout.readline()
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
