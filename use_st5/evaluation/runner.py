"""Runs evaluation tasks on one encoder; each sentence is encoded once, each result is cached.

The result is a record: scores, and everything that is needed to repeat the run.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import json
import math
import os
import platform
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from importlib import metadata
from pathlib import Path
from typing import Any, TypedDict, cast

from use_st5.data.data_folder import DataFolder
from use_st5.encode.options import default_prompt, usual_prompts
from use_st5.encode.vector_store import VectorCache
from use_st5.evaluation.task import EvaluationTask, TaskContext
from use_st5.io.files import atomic_path, sole_writer
from use_st5.io.records import check_record, read_record

FORMAT = 1
# Raised with every change of a protocol that changes scores; results cached before are not used.
PROTOCOL_VERSION = 1
# Bytes of a record: a hundred times the size of a record of all tasks.
_LIMIT = 2**26
_PACKAGES = ("use_st5", "numpy", "scipy", "scikit-learn", "tensorflow", "keras")


class ModelFacts(TypedDict):
    """The model of a record."""

    name: str
    identity: str | None
    dimension: int | None


class _TaskEntry(TypedDict):
    """What reports and tables read of a task's entry in a record."""

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
        """A record of this and a later run of a model; of a task of both, the later counts."""
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
        _write_json(path, {"format": FORMAT, **dataclasses.asdict(self)})

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> EvaluationRecord:
        """Reads a record; a ValueError says what is wrong with the file."""
        remedy = "Give a record that `use-st5 evaluate` wrote."
        record = read_record(path, cls, remedy=remedy, version=FORMAT, limit=_LIMIT)
        for name, entry in record.tasks.items():
            _checked_entry(entry, f"{os.fspath(path)}: task {name}", remedy)
        return record


def _checked_entry(entry: dict[str, Any], where: str, remedy: str) -> dict[str, Any]:
    task = check_record(entry, _TaskEntry, where=where, remedy=remedy)
    if task["main"] not in task["scores"]:
        expected = f"$.main: expected one of {[*task['scores']]}"
        raise ValueError(f"{where}: {expected}, received {task['main']!r}. {remedy}")
    return entry


class Progress:
    """Shows nothing. Subclasses show the progress."""

    def started(self, task: EvaluationTask, number: int, total: int) -> None:
        """Called when task `number` (from 1) of `total` begins."""

    def finished(self, name: str, result: dict[str, Any], *, cached: bool) -> None:
        """Called with the record's entry of a finished task; `cached`: from an earlier run."""


def evaluate(
    encoder: Any,
    tasks: Sequence[EvaluationTask],
    data: str | os.PathLike[str] | None = None,
    *,
    name: str | None = None,
    identity: str | None = None,
    seed: int = 1111,
    cache: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    command: str = "",
    prompts: Mapping[str, str] | None = None,
) -> EvaluationRecord:
    """Evaluates an encoder on tasks.

    Each distinct sentence is encoded once for all tasks. With a cache, the results of finished
    tasks and the embeddings are kept, so a stopped run can continue. If a task fails, the other
    tasks still run, and the record contains the error.

    Args:
        encoder: Any object with `encode(list of str) → [n, dim]`, or such a function.
        tasks: The tasks to run, for example `select_tasks("sts,weat")`.
        data: The folder with the data sets; None if no task needs one.
        name: The model's name; by default the encoder's `name`, else that of the function or class.
        identity: A text that changes with the model's weights, the key of the cache; by default
            the encoder's `identity`, and its default prompt.
        seed: Seed of all random numbers.
        cache: The folder that keeps results and embeddings; None keeps nothing.
        progress: Shows the progress.
        command: The command line, for the record.
        prompts: What retrieval puts before a "query" and a "document"; None: the encoder's own.

    Raises:
        MissingDataError: A data set is missing. This is checked before any sentence is encoded.
        Exception: All tasks failed; this is the error of the last one.
    """
    if not tasks:
        raise ValueError("Expected at least one task, received none.")
    if not identity:
        identity, prompt = getattr(encoder, "identity", None), default_prompt(encoder)
        identity = f"{identity} with the prompt {prompt!r}" if identity and prompt else identity
    if cache is not None and not identity:
        raise ValueError("identity: expected a text that changes with the weights, or no cache.")
    kept = None if cache is None else Path(cache, sha256(str(identity).encode()).hexdigest())
    folder = None if data is None else DataFolder(data)
    hashes = {task.name: _hashes(task, folder) for task in tasks}
    embed = VectorCache(getattr(encoder, "encode", encoder), store=kept and kept / "embeddings")
    # Without a folder, `_hashes` has refused the tasks that need one.
    prompts = usual_prompts(encoder) if prompts is None else prompts
    context = TaskContext(embed, cast(DataFolder, folder), seed, prompts)
    results: dict[str, dict[str, Any]] = {}
    failed: dict[str, str] = {}
    progress = progress or Progress()
    for number, task in enumerate(tasks, start=1):
        progress.started(task, number, len(tasks))
        file = f"{task.name.replace(':', '_')}-{_key(task, hashes[task.name], seed)}.json"
        path = kept and kept / file
        cached = path is not None and path.is_file()
        try:
            if path and cached:
                result = read_result(path)
            else:
                result = _run(task, context, hashes[task.name])
                if path:
                    # It removes leftovers.
                    with contextlib.suppress(BlockingIOError), sole_writer(path):
                        _write_json(path, result)
        except Exception as error:
            if number == len(tasks) and not results:
                raise
            failed[task.name] = f"{type(error).__name__}: {error}"
            continue
        results[task.name] = result
        progress.finished(task.name, result, cached=cached)
    names = (name, getattr(encoder, "name", ""), getattr(encoder, "__name__", ""))
    called = next(filter(None, names), type(encoder).__name__)
    return EvaluationRecord(
        model={"name": called, "identity": identity, "dimension": embed.dimension},
        created=_now(),
        versions=_versions(),
        command=command,
        seed=seed,
        tasks=results,
        failed=failed,
    )


def _hashes(task: EvaluationTask, folder: DataFolder | None) -> dict[str, str]:
    """SHA-256 of each file that the task reads."""
    if folder is not None:
        return folder.hashes(task.used_sources(folder))
    if task.sources or task.read_files:
        raise ValueError(f"{task.title}: expected a data folder, received none.")
    return {}


def _key(task: EvaluationTask, hashes: Mapping[str, str], seed: int) -> str:
    """Changes with all that changes a result; of the paths of files, only the name matters."""
    files = sorted((Path(path).name, digest) for path, digest in hashes.items())
    agreed = [PROTOCOL_VERSION, dict(task.options), files, seed]
    return sha256(json.dumps(agreed, sort_keys=True).encode()).hexdigest()[:16]


def _run(task: EvaluationTask, context: TaskContext, hashes: dict[str, str]) -> dict[str, Any]:
    started = time.monotonic()
    result = task.run(context)
    entry = {
        "group": task.group,
        "title": task.title,
        "protocol": task.protocol,
        "options": dict(task.options),
        **dataclasses.asdict(result),
        "data": hashes,
        "seconds": round(time.monotonic() - started, 3),
        "finished": _now(),
        "versions": _versions(),
    }
    return _finite(entry)


def read_result(path: Path) -> dict[str, Any]:
    """Reads a result that an earlier run cached."""
    remedy = "Remove it: it is computed again."
    entry = read_record(path, dict[str, Any], remedy=remedy, limit=_LIMIT)
    return _checked_entry(entry, str(path), remedy)


def _write_json(path: str | os.PathLike[str], content: Any) -> None:
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
    with atomic_path(path) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8")


def _finite(value: Any) -> Any:
    """The same nested value with None for NaN and infinities, which JSON does not have."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return versions
