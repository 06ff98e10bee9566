"""Runs a script while every import of TensorFlow fails; tests start it in fresh processes.

usage: without_tensorflow.py SCRIPT ARGUMENTS…
"""

from __future__ import annotations

import runpy
import sys

if __name__ == "__main__":
    # Keras imports TensorFlow under any backend if it is installed, and works without it, too.
    sys.modules["tensorflow"] = None
    sys.argv = sys.argv[1:]
    runpy.run_path(sys.argv[0], run_name="__main__")
