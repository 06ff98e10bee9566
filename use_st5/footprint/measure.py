"""Measures models side by side over lengths of text, and goes on where an earlier run stopped."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import os
import platform
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from use_st5._model_folder import model_folder
from use_st5._model_manifest import ModelManifest
from use_st5.footprint.probe_process import ProbeProcess
from use_st5.footprint.record import FootprintPoint, FootprintRecord, MeasuredModel

LENGTHS = (10, 20, 40, 60, 80, 100, 128, 192, 256, 384, 512)

Device = Literal["all", "cpu", "gpu"]
OnVisit = Callable[[int, int], None]


def measure_footprint(
    models: Sequence[str | os.PathLike[str]],
    path: str | os.PathLike[str],
    *,
    lengths: Sequence[int] = LENGTHS,
    batch_size: int = 1,
    threads: int = 1,
    repeats: int = 10,
    device: Device = "all",
    on_visit: OnVisit = lambda done, total: None,
    command: str = "",
) -> FootprintRecord:
    """Measures compute time and memory against the length of a text (USE paper, Figure 2).

    Every model has a process of its own. All are visited in turn, at one length after the other,
    `repeats` times over, so that a neighbour's load meets all alike. A visit times the way from
    strings to vectors as `use_st5.load(model).encode` goes it, and the way from ids to vectors, on
    which nothing is cut, each after a warm-up; and it asks TensorFlow's allocator for the peak of
    the latter above the loaded model.

    The record is written after every round, and when something ends the run: a second call goes on.

    Args:
        models: Names of bundled models, or folders that `use_st5.export` wrote.
        path: The record. An older one there is continued; its models and lengths must be among
            those asked for, and the setting the same. Where a model is new or has changed, all are
            measured anew: ratios are of visits made one after the other.
        lengths: Words of a text.
        batch_size: Texts in one call of a model; times are those of one text.
        threads: Threads of each model.
        repeats: Visits to each model at each length.
        device: Where to measure; "all" is the CPU and, if TensorFlow sees one, a GPU.
        on_visit: Is told how many visits are done, and how many there will be.
        command: The command line, for the record.

    Raises:
        FileNotFoundError: There is no such model.
        FileExistsError: The older record holds more than is asked for.
        ValueError: It is of another setting, an argument is out of range, or a model failed.
    """
    lengths = sorted(set(lengths))
    if not lengths or min(*lengths, batch_size, threads, repeats) < 1:
        raise ValueError(
            "Expected lengths, a batch size, threads and repeats of at least 1, received "
            f"{lengths}, {batch_size}, {threads} and {repeats}."
        )
    found = find_models(models)
    setting = {
        "batch_size": batch_size,
        "threads": threads,
        "processor": processor(),
        "cores": os.cpu_count(),
    }
    path = Path(path)
    older = FootprintRecord.read(path) if path.exists() else None
    if older is not None:
        _check_older(older, path, [model.name for _, model in found], lengths, setting)
    run = _Run(path, found, setting, command, older)
    run.measure(device, lengths, repeats, on_visit)
    return run.record()


def find_models(given: Sequence[str | os.PathLike[str]]) -> list[tuple[Path, MeasuredModel]]:
    """The folders of models given by name or folder, and what their manifests say.

    Models that share a name are called by their folders.

    Raises:
        FileNotFoundError: There is no such model.
        ValueError: None was given, use_st5 did not export one, or two cannot be told apart.
    """
    if not given:
        raise ValueError("Expected at least one model, received none.")
    folders = [model_folder(each) for each in given]
    manifests = [_manifest(folder) for folder in folders]
    shared = Counter(manifest.name for manifest in manifests)
    models = [
        MeasuredModel(
            name=manifest.name if shared[manifest.name] == 1 else folder.name,
            identity=manifest.model_hash,
            dimension=manifest.dimension,
            max_length=manifest.max_length,
            precision=manifest.precision,
            parameters=manifest.parameters,
        )
        for folder, manifest in zip(folders, manifests, strict=True)
    ]
    name, number = Counter(model.name for model in models).most_common(1)[0]
    if number > 1:
        raise ValueError(
            f"Expected models that can be told apart, received {number} called {name} in folders "
            "of one name. Give each once, or rename a folder."
        )
    return list(zip(folders, models, strict=True))


def _manifest(folder: Path) -> ModelManifest:
    manifest = ModelManifest.read(folder)
    if manifest is None:
        raise ValueError(
            f"{folder}: expected a model that use_st5 exported (with use_st5.json), found another "
            "SavedModel, whose ids and limits are not known."
        )
    return manifest


class _Run:
    """The points measured so far, and the way to more."""

    def __init__(
        self,
        path: Path,
        found: list[tuple[Path, MeasuredModel]],
        setting: dict[str, Any],
        command: str,
        older: FootprintRecord | None,
    ) -> None:
        self._path = path
        self._folders = {model.name: folder for folder, model in found}
        self._models = {model.name: model for _, model in found}
        self._setting = setting
        self._command = command
        self._versions: dict[str, str] = {}
        self._gpu: str | None = None
        self._points: dict[tuple[str, str, int], FootprintPoint] = {}
        same = older is not None and _identities(older.models) == _identities(self._models.values())
        self._older = older if same else None
        if self._older is not None:
            self._points = self._older.points_by_key()

    def record(self) -> FootprintRecord:
        """What is known now."""
        return FootprintRecord(
            created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            versions=self._versions,
            command=self._command,
            setting=self._setting,
            gpu=self._gpu,
            models=tuple(self._models.values()),
            points=tuple(self._points.values()),
        )

    def measure(self, device: Device, lengths: list[int], repeats: int, on_visit: OnVisit) -> None:
        """Visits every model at every length until each has its visits, on one or both devices."""
        one_device = len(self._models) * len(lengths) * repeats
        before, total = 0, one_device
        for place in ("gpu",) if device == "gpu" else ("cpu", "gpu"):
            if place == "gpu" and (device == "cpu" or (device == "all" and self._gpu is None)):
                continue
            total = before + one_device * (2 if place == "cpu" and device == "all" else 1)
            with self._started(place) as probes:
                if place == "cpu" and self._gpu is None:
                    total = one_device
                for done in self._visits(probes, place, lengths, repeats):
                    on_visit(before + done, total)
            before += one_device

    def _visits(
        self, probes: dict[str, ProbeProcess], device: str, lengths: list[int], repeats: int
    ) -> Iterator[int]:
        """Makes the missing visits; gives the number of those done."""
        done = 0
        try:
            for turn in range(repeats):
                for length in lengths:
                    for name, probe in probes.items():
                        self._visit(probe, device, name, length, turn)
                        done += 1
                        yield done
                self.record().write(self._path)
        finally:
            if self._points:
                self.record().write(self._path)

    def _visit(self, probe: ProbeProcess, device: str, name: str, length: int, turn: int) -> None:
        key = (device, name, length)
        point = self._points.get(key)
        if point is not None and point.visits > turn:
            return
        tokens, visit = probe.visit(length)
        if point is None:
            point = FootprintPoint(device=device, model=name, length=length, tokens=tokens)
        self._points[key] = point.with_visit(visit)

    @contextlib.contextmanager
    def _started(self, device: str) -> Iterator[dict[str, ProbeProcess]]:
        """A process for each model, started side by side, ended with the block."""
        options = {name: self._setting[name] for name in ("batch_size", "threads")}
        with contextlib.ExitStack() as stack:
            probes = {}
            for name, folder in self._folders.items():
                probes[name] = ProbeProcess(name, folder, device=device, **options)
                stack.callback(probes[name].close)
            for name, probe in probes.items():
                facts = probe.facts()
                self._models[name] = dataclasses.replace(
                    self._models[name], parameter_bytes=facts["parameter_bytes"]
                )
                self._versions, self._gpu = facts["versions"], facts["gpu"]
            if self._older is not None:
                _check_same(
                    self._path,
                    {**self._older.versions, "gpu": self._older.gpu},
                    {**self._versions, "gpu": self._gpu},
                )
            yield probes


def _identities(models: Iterable[MeasuredModel]) -> dict[str, str]:
    return {model.name: model.identity for model in models}


def _check_older(
    older: FootprintRecord,
    path: Path,
    names: list[str],
    lengths: list[int],
    setting: dict[str, Any],
) -> None:
    """Refuses to replace a record that holds more, or to mix two settings."""
    others = [model.name for model in older.models if model.name not in names]
    others += [f"{n} words" for n in sorted({p.length for p in older.points} - set(lengths))]
    if others:
        raise FileExistsError(
            f"{path} has results that are not asked for now ({', '.join(others)}): ask for these "
            "too, or choose another folder"
        )
    _check_same(path, older.setting, setting)


def _check_same(path: Path, older: dict[str, Any], now: dict[str, Any]) -> None:
    differing = [name for name in now if older.get(name) != now[name]]
    if differing:
        there = ", ".join(f"{name} {older.get(name)}" for name in differing)
        here = ", ".join(f"{name} {now[name]}" for name in differing)
        raise ValueError(
            f"{path} was measured with {there}, now it would be {here}: figures of both do not "
            "compare. Choose another folder, or remove it"
        )


def processor() -> str:
    """What the processor calls itself; on Linux Python knows its architecture alone."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
