"""A graph in ONNX Runtime."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from use_st5._imports import require
from use_st5.engines.onnx_graph import OUTPUT


class Session:
    """Runs a graph; `OMP_NUM_THREADS` sets the number of threads, as for OpenMP.

    Attributes:
        inputs: The names of its inputs.
        on_run: A function that is called with the input arrays of each run; None calls nothing.
    """

    def __init__(self, file: Path) -> None:
        self._runtime = require("onnxruntime", "onnx")
        self._file = file
        self.on_run: Callable[[dict[str, np.ndarray]], None] | None = None
        self._open()
        self.inputs = [each.name for each in self._session.get_inputs()]

    def run(self, given: dict[str, np.ndarray]) -> np.ndarray:
        """The vectors, float32 `[texts, dimension]`, for the input arrays by their names."""
        if self.on_run is not None:
            self.on_run(given)
        if os.getpid() != self._process:
            # The threads of the session do not exist in a fork. The old session is kept, because
            # its deletion would wait for them.
            self._of_parent = self._session
            self._open()
        return np.asarray(self._session.run([OUTPUT], given)[0])

    def _open(self) -> None:
        options = self._runtime.SessionOptions()
        # A list, such as "4,2", is for nested levels. OpenMP ignores what is no number.
        threads = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
        options.intra_op_num_threads = int(threads) if threads.isdecimal() else 0
        options.log_severity_level = 3
        try:
            self._session: Any = self._runtime.InferenceSession(
                os.fspath(self._file), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # ONNX Runtime's own kinds
            raise ValueError(
                f"Expected a graph that ONNX Runtime {self._runtime.__version__} reads in "
                f"{self._file} ({str(error).splitlines()[0]}). Install a later version of "
                "onnxruntime, or load the model with backend='tensorflow'."
            ) from error
        self._process = os.getpid()
