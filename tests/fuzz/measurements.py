"""`use-st5 benchmark` without processes that measure: the kills are about what it writes."""

from __future__ import annotations

import time
from typing import Any

from use_st5.footprint import measure
from use_st5.footprint.record import Visit


class MadeUpProbe:
    """Stands in for `ProbeProcess`."""

    def __init__(self, name: str, folder: Any, **options: Any) -> None:
        self._name = name

    def facts(self) -> dict[str, Any]:
        """What a process says first."""
        return {"parameter_bytes": 1000, "gpu": None, "versions": {"tensorflow": "2.20.0"}}

    def visit(self, length: int) -> tuple[int, Visit]:
        """A made-up visit, after a moment."""
        time.sleep(0.01)
        return length, Visit(1e-3 * length, 1e-3 * length, 1000)

    def close(self) -> None:
        """Nothing to end."""


def install() -> None:
    """Puts the stand-in into the place."""
    measure.ProbeProcess = MadeUpProbe
