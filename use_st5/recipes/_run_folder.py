"""What every recipe does with its output folder."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from use_st5._files import atomic_path, sole_writer
from use_st5._model_manifest import check_replaceable

Run = Callable[..., dict[str, float]]


def alone(run: Run) -> Run:
    """A recipe's `run` that no other process shares its output folder with.

    It raises BlockingIOError, before any work, where one is writing there.
    """

    @functools.wraps(run)
    def locked(data: Path, output: Path, *args: Any, **kwargs: Any) -> dict[str, float]:
        with sole_writer(output, inside=True):
            return run(data, output, *args, **kwargs)

    return locked


def checkpoints_folder(output: Path, *, resume: bool) -> Path:
    """The folder of a run's checkpoints.

    Raises:
        FileExistsError: It exists, and the run shall not continue from it; or what the run would
            export to is there and holds anything but a model.
    """
    check_replaceable(output / "model")
    checkpoints = output / "checkpoints"
    if not resume and checkpoints.exists():
        raise FileExistsError(f"{checkpoints} exists. Remove it, or let the run resume.")
    return checkpoints


def write_scores(output: Path, scores: Mapping[str, float]) -> None:
    """Writes `scores.json`: the run is complete."""
    with atomic_path(output / "scores.json") as temporary:
        temporary.write_text(json.dumps(dict(scores), indent=2) + "\n", encoding="utf-8")
