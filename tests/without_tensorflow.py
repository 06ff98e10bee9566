"""Run by tests in fresh processes: runs a script where every import of TensorFlow fails.

usage: without_tensorflow.py SCRIPT ARGUMENTS…
"""

from __future__ import annotations

import runpy
import sys

if __name__ == "__main__":
    # Keras imports it under any backend where it is installed, and manages without.
    sys.modules["tensorflow"] = None
    sys.argv = sys.argv[1:]
    runpy.run_path(sys.argv[0], run_name="__main__")
