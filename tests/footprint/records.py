"""Records of made-up figures, and folders that look like exported models."""

from __future__ import annotations

import hashlib
from pathlib import Path

from use_st5._model_manifest import ModelManifest
from use_st5.footprint.record import FootprintPoint, FootprintRecord, MeasuredModel

LENGTHS = (10, 100, 200)


def model(name: str, *, max_length: int | None = None, megabytes: int = 10) -> MeasuredModel:
    return MeasuredModel(
        name=name,
        identity=f"identity of {name}",
        dimension=8,
        max_length=max_length,
        precision="float32",
        parameters=1000,
        parameter_bytes=megabytes * 10**6,
    )


def point(name: str, length: int, *, seconds: float, working: int | None) -> FootprintPoint:
    """Three visits: half the seconds, the seconds, twice the seconds."""
    times = (seconds / 2, seconds, seconds * 2)
    return FootprintPoint(
        model=name,
        device="cpu",
        length=length,
        tokens=length,
        text_seconds=times,
        ids_seconds=times,
        working_bytes=(working,) * 3,
    )


def record(*, working: int | None = 10**6) -> FootprintRecord:
    """A constant model of 20 MB and, of 10 MB, one whose time and memory grow with the square."""
    flat = [point("flat", n, seconds=1e-3, working=working) for n in LENGTHS]
    steep = [
        point("steep", n, seconds=n**2 * 1e-7, working=working and working * n**2 // 1000)
        for n in LENGTHS
    ]
    return FootprintRecord(
        created="2026-11-21T00:00:00+00:00",
        versions={"tensorflow": "2.20.0"},
        command="",
        setting={"batch_size": 1, "threads": 1, "processor": "a processor", "cores": 2},
        gpu=None,
        models=(model("flat", megabytes=20), model("steep", max_length=150)),
        points=(*flat, *steep),
    )


def write_folder(folder: Path, name: str, *, content: str = "graph") -> Path:
    """A folder with the manifest of an exported model; its graph cannot be loaded."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "saved_model.pb").write_text(content)
    ModelManifest(
        name=name,
        dimension=8,
        max_length=128,
        precision="float32",
        parameters=1000,
        trainable_parameters=1000,
        versions={},
        files={},
        model_hash=hashlib.sha256(content.encode()).hexdigest(),
        metadata={},
    ).write(folder)
    return folder
