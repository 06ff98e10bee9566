"""The main program of each `py_test` target: hands its arguments to pytest."""

from __future__ import annotations

import sys

import pytest

if __name__ == "__main__":
    sys.exit(pytest.main(sys.argv[1:]))
