"""Runs evaluation tasks on one encoder; each sentence is encoded once, each result is cached."""

from __future__ import annotations

import dataclasses
import datetime
import hashlib
import json
import os
import platform
import time
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, cast

from use_st5.data.data_folder import DataFolder
from use_st5.encode.options import default_prompt, usual_prompts
from use_st5.encode.vector_store import VectorCache
from use_st5.evaluation.record import LIMIT, EvaluationRecord, check_task, finite, write_json
from use_st5.evaluation.task import EvaluationTask, Progress, TaskContext
from use_st5.io.records import read_record

_PACKAGES = ("use_st5", "numpy", "scipy", "scikit-learn", "tensorflow", "keras")

# Raised with every change of a protocol that changes scores; results cached before are not used.
PROTOCOL_VERSION = 1


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

    Raises:
        MissingDataError: A data set is missing. This is checked before any sentence is encoded.
        ValueError: No tasks, or a cache without an identity.
        Exception: All tasks failed; this is the error of the last one.
    """
    if not tasks:
        raise ValueError("Expected at least one task, received none.")
    identity = identity or identity_with_prompt(
        getattr(encoder, "identity", None), default_prompt(encoder)
    )
    store = None if cache is None else ResultStore(Path(cache), identity)
    folder = None if data is None else DataFolder(data)
    hashes = {task.name: _hashes(task, folder) for task in tasks}
    progress = progress or Progress()
    encode = getattr(encoder, "encode", encoder)
    embed = VectorCache(progress.encoding(encode), store=store.embeddings if store else None)
    # Without a folder, `_hashes` has refused the tasks that need one.
    context = TaskContext(embed, cast(DataFolder, folder), seed, usual_prompts(encoder))
    results, failed = _results(tasks, context, hashes, store, progress)
    return EvaluationRecord(
        model={"name": name or _name(encoder), "identity": identity, "dimension": embed.dimension},
        created=_now(),
        versions=_versions(),
        command=command,
        seed=seed,
        tasks=results,
        failed=failed,
    )


def _results(
    tasks: Sequence[EvaluationTask],
    context: TaskContext,
    hashes: dict[str, dict[str, str]],
    store: ResultStore | None,
    progress: Progress,
) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
    """The record's entry of each finished task, and the error of each failed one."""
    results: dict[str, dict[str, Any]] = {}
    failed: dict[str, str] = {}
    for number, task in enumerate(tasks, start=1):
        progress.started(task, number, len(tasks))
        try:
            cached_result = store and store.read(task, hashes[task.name], context.seed)
            result = cached_result or _run(task, context, hashes[task.name])
            if store and not cached_result:
                store.write(task, hashes[task.name], context.seed, result)
        except Exception as error:
            if number == len(tasks) and not results:
                raise
            failed[task.name] = f"{type(error).__name__}: {error}"
            continue
        results[task.name] = result
        progress.finished(task.name, result, cached=bool(cached_result))
    return results, failed


def identity_with_prompt(identity: str | None, prompt: str) -> str | None:
    """The key of the results of a model that puts a prompt before each text; "" is no prompt."""
    return f"{identity} with the prompt {prompt!r}" if identity and prompt else identity


def _name(encoder: Any) -> str:
    """The encoder's `name`, or the name of the function, or else the name of its class."""
    names = (getattr(encoder, attribute, "") for attribute in ("name", "__name__"))
    return next(filter(None, names), type(encoder).__name__)


def _hashes(task: EvaluationTask, folder: DataFolder | None) -> dict[str, str]:
    """SHA-256 of each file that the task reads."""
    if folder is None:
        if task.sources or task.optional_sources:
            raise ValueError(f"{task.title}: expected a data folder, received none.")
        return {}
    return folder.hashes(task.used_sources(folder))


def _run(task: EvaluationTask, context: TaskContext, hashes: dict[str, str]) -> dict[str, Any]:
    started = time.monotonic()
    result = task.run(context)
    return finite(
        {
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
    )


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


class ResultStore:
    """Keeps the results of one model.

    Args:
        cache: The cache folder, shared by all models.
        identity: A text that changes with the model's weights.

    Attributes:
        embeddings: The folder of the model's embeddings.
    """

    def __init__(self, cache: Path, identity: str | None) -> None:
        if not identity:
            raise ValueError(
                "identity: expected a text that changes with the model's weights, because results "
                "are cached, received none. Give one, or leave the cache out."
            )
        self._folder = cache / hashlib.sha256(identity.encode()).hexdigest()
        self.embeddings = self._folder / "embeddings"

    def read(
        self, task: EvaluationTask, hashes: dict[str, str], seed: int
    ) -> dict[str, Any] | None:
        """The cached result of a task; None if there is none.

        `hashes` maps the path of each data file to its SHA-256; only the file name of the path
        matters.
        """
        path = self._path(task, hashes, seed)
        if not path.is_file():
            return None
        remedy = "Remove it: it is computed again."
        result = read_record(path, dict[str, Any], remedy=remedy, limit=LIMIT)
        check_task(result, where=str(path), remedy=remedy)
        return result

    def write(
        self, task: EvaluationTask, hashes: dict[str, str], seed: int, result: dict[str, Any]
    ) -> None:
        """Stores a result, which `read` returns."""
        write_json(self._path(task, hashes, seed), result)

    def _path(self, task: EvaluationTask, hashes: dict[str, str], seed: int) -> Path:
        files = sorted((Path(path).name, digest) for path, digest in hashes.items())
        agreed = [PROTOCOL_VERSION, dict(task.options), files, seed]
        key = hashlib.sha256(json.dumps(agreed, sort_keys=True).encode()).hexdigest()
        return self._folder / f"{task.name}-{key[:16]}.json"
