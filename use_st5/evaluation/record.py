"""The file that an evaluation leaves: every score with all that repeating it takes."""

from __future__ import annotations

import dataclasses
import json
import math
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from use_st5._files import atomic_path

FORMAT = 1
_TASK_KEYS = {"group", "title", "protocol", "main", "scores", "counts", "details", "data"}


@dataclass(frozen=True, kw_only=True)
class EvaluationRecord:
    """One model's scores.

    Attributes:
        model: Its "name", "identity" (a text that changes with the model's content; None where it
            is not known) and "dimension".
        created: When the record was made, ISO 8601 in UTC.
        versions: Name → version of Python and of the packages that made it.
        command: The command line; empty where Python code called.
        seed: Of everything random.
        tasks: Name of a task → its "group", "title", "protocol", "options", "main", "scores" (None
            where undefined), "counts", "details" (as in `TaskResult`), "data" (path of each data
            file → SHA-256), "seconds", "finished" and "versions" (a result may come from an
            earlier run).
        skipped: Name of a task → why it was not run.
        failed: Name of a task → the error that ended it.
    """

    model: dict[str, Any]
    created: str
    versions: dict[str, str]
    command: str
    seed: int
    tasks: dict[str, dict[str, Any]]
    skipped: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes the record as JSON; the file appears when it is whole."""
        content = {"format": FORMAT, **dataclasses.asdict(self)}
        write_json(path, content)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> EvaluationRecord:
        """Reads a record.

        Raises:
            FileNotFoundError: There is no such file.
            ValueError: It is no record, or one of a later format.
        """
        path = Path(path)
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            found = content.pop("format")
            if found == FORMAT:
                _check_tasks(content["tasks"])
                return cls(**content)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ValueError(
                f"{path}: expected a record written by `use-st5 evaluate`, found something else "
                f"({type(error).__name__}: {error})."
            ) from error
        raise ValueError(
            f"{path}: expected a record of format {FORMAT}, found {found!r}: a later use_st5 wrote "
            "it. Update use_st5."
        )


def _check_tasks(tasks: dict[str, dict[str, Any]]) -> None:
    for name, result in tasks.items():
        if missing := sorted(_TASK_KEYS - set(result)):
            raise ValueError(f"task {name} lacks {', '.join(missing)}")
        if result["main"] not in result["scores"]:
            raise ValueError(f"task {name} has no score {result['main']!r}")


def write_json(path: str | os.PathLike[str], content: dict[str, Any]) -> None:
    """Writes JSON with null for what is not finite; the file appears when it is whole."""
    text = json.dumps(finite(content), indent=1, ensure_ascii=False, allow_nan=False)
    with atomic_path(path) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8")


def finite(value: Any) -> Any:
    """The same nested value with None for NaN and infinities, which JSON does not have."""
    if isinstance(value, dict):
        return {key: finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [finite(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
