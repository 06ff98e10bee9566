"""The result file of an evaluation: scores, and everything that is needed to repeat it."""

from __future__ import annotations

import dataclasses
import json
import math
import os
from dataclasses import dataclass, field
from typing import Any, TypedDict

import msgspec

from use_st5.io.files import atomic_path
from use_st5.io.records import check_record, read_record

FORMAT = 1
# Bytes of a record: a hundred times the size of a record of all tasks.
LIMIT = 2**26


class ModelFacts(TypedDict):
    """The model of a record."""

    name: str
    identity: str | None
    dimension: int | None


class _TaskRecord(msgspec.Struct):
    group: str
    title: str
    protocol: str
    options: dict[str, Any]
    main: str
    scores: dict[str, float | None]
    counts: dict[str, int]
    details: dict[str, Any]
    data: dict[str, str]
    seconds: float


class _Categories(msgspec.Struct):
    categories: list[str] = []

    def __post_init__(self) -> None:
        if len(self.categories) not in (0, 4):
            raise ValueError("Expected four categories or none")


@dataclass(frozen=True, kw_only=True)
class EvaluationRecord:
    """One model's scores.

    Attributes:
        model: Its "name", "identity" (a text that changes with the model's content; None if it is
            unknown) and "dimension" (None if every result came from the cache, but no embedding).
        created: When the record was made, ISO 8601 in UTC.
        versions: Name → version of Python and of the packages that made it.
        command: The command line; empty if Python code started the run.
        seed: Seed of all random numbers.
        tasks: Name of a task → its "group", "title", "protocol", "options", "main", "scores" (None
            if undefined), "counts", "details" (as in `TaskResult`), "data" (path of each data
            file → SHA-256), "seconds", "finished" and "versions" (a result may come from an
            earlier run).
        skipped: Name of a task → why it was not run.
        failed: Name of a task → the error that ended it.
    """

    model: ModelFacts
    created: str
    versions: dict[str, str]
    command: str
    seed: int
    tasks: dict[str, dict[str, Any]]
    skipped: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)

    def merged(self, later: EvaluationRecord) -> EvaluationRecord:
        """A record of both runs; for a task of both, that of the later run counts.

        Args:
            later: A run of the same model with the same seed.
        """
        tasks = {**self.tasks, **later.tasks}
        skipped = {**self.skipped, **later.skipped}
        failed = {**self.failed, **later.failed}
        return dataclasses.replace(
            later,
            model={**later.model, "dimension": later.model["dimension"] or self.model["dimension"]},
            tasks=tasks,
            skipped={name: why for name, why in skipped.items() if name not in tasks},
            failed={name: why for name, why in failed.items() if name not in later.tasks},
        )

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes the record as JSON; the file appears when it is complete."""
        content = {"format": FORMAT, **dataclasses.asdict(self)}
        write_json(path, content)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> EvaluationRecord:
        """Reads a record.

        Raises:
            FileNotFoundError: There is no such file.
            ValueError: The file is not a record, or has a later format.
        """
        remedy = "Give a record that `use-st5 evaluate` wrote."
        record = read_record(path, cls, remedy=remedy, version=FORMAT, limit=LIMIT)
        for name, result in record.tasks.items():
            check_task(result, where=f"{os.fspath(path)}: task {name}", remedy=remedy)
        return record


def check_task(result: dict[str, Any], *, where: str, remedy: str) -> None:
    """Checks those fields of a task's entry that reports and tables read."""
    task = check_record(result, _TaskRecord, where=where, remedy=remedy)
    if task.group in ("weat", "seat"):
        check_record(task.details, _Categories, where=f"{where}, details", remedy=remedy)
    if task.main not in task.scores:
        raise ValueError(
            f"{where}: $.main: expected one of {[*task.scores]}, received {task.main!r}. {remedy}"
        )


def write_json(path: str | os.PathLike[str], content: dict[str, Any]) -> None:
    """Writes JSON with null for numbers that are not finite; the file appears when complete."""
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
