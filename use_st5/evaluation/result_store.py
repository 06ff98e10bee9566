"""Results of tasks on disk, each found again by what it depends on."""

from __future__ import annotations

import contextlib
import hashlib
import json
from pathlib import Path
from typing import Any

from use_st5._files import remove_stale_lock, sole_writer
from use_st5._records import read_record
from use_st5.evaluation.record import check_task, write_json
from use_st5.evaluation.task import EvaluationTask

# Raised with every change of a protocol that changes scores: results kept before it do not count.
PROTOCOL_VERSION = 1


class ResultStore:
    """Keeps the results of one model.

    Args:
        cache: The folder of all models.
        identity: A text that changes with the model's weights.

    Attributes:
        embeddings: Where the model's embeddings are kept.
    """

    def __init__(self, cache: Path, identity: str) -> None:
        self._folder = cache / hashlib.sha256(identity.encode()).hexdigest()
        self.embeddings = self._folder / "embeddings"

    def read(
        self, task: EvaluationTask, hashes: dict[str, str], seed: int
    ) -> dict[str, Any] | None:
        """The kept result of a task; None where there is none.

        Args:
            task: The task; its options count.
            hashes: SHA-256 of each data file by its path, of which the file's name counts.
            seed: Of everything random.

        Raises:
            ValueError: The file is damaged.
        """
        path = self._path(task, hashes, seed)
        if not path.is_file():
            return None
        remove_stale_lock(path)
        remedy = "Remove it: it is made anew."
        result = read_record(path, dict[str, Any], remedy=remedy)
        check_task(task.name, result, where=str(path), remedy=remedy)
        return result

    def write(
        self, task: EvaluationTask, hashes: dict[str, str], seed: int, result: dict[str, Any]
    ) -> None:
        """Keeps a result; `read` gives it back."""
        path = self._path(task, hashes, seed)
        # Another process that writes the same result keeps it for both.
        with contextlib.suppress(BlockingIOError), sole_writer(path):
            write_json(path, result)

    def _path(self, task: EvaluationTask, hashes: dict[str, str], seed: int) -> Path:
        files = sorted((Path(path).name, digest) for path, digest in hashes.items())
        agreed = [PROTOCOL_VERSION, task.options(), files, seed]
        key = hashlib.sha256(json.dumps(agreed, sort_keys=True).encode()).hexdigest()
        return self._folder / f"{task.name}-{key[:16]}.json"
