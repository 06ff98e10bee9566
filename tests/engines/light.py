"""Run by tests in fresh processes: a script with the packages of the light installation alone.

usage: light.py SCRIPT ARGUMENTS…
"""

from __future__ import annotations

import runpy
import sys

ABSENT = (
    *("tensorflow", "keras", "tf_keras", "tensorflow_text", "onnx", "scipy", "pyarrow"),
    *("safetensors", "sklearn", "torch", "transformers"),
)

if __name__ == "__main__":
    for name in ABSENT:
        sys.modules[name] = None  # type: ignore[assignment]
    sys.argv = sys.argv[1:]
    runpy.run_path(sys.argv[0], run_name="__main__")
