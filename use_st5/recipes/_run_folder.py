"""What every recipe does with its output folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from use_st5._files import atomic_path


def checkpoints_folder(output: Path, *, resume: bool) -> Path:
    """The folder of a run's checkpoints.

    Raises:
        FileExistsError: It exists, and the run shall not continue from it.
    """
    checkpoints = output / "checkpoints"
    if not resume and checkpoints.exists():
        raise FileExistsError(f"{checkpoints} exists. Remove it, or let the run resume.")
    return checkpoints


def write_scores(output: Path, scores: Mapping[str, float]) -> None:
    """Writes `scores.json`: the run is complete."""
    with atomic_path(output / "scores.json") as temporary:
        temporary.write_text(json.dumps(dict(scores), indent=2) + "\n", encoding="utf-8")
