"""The figures as rows of text, for terminals and for Markdown."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import numpy as np

from use_st5.resources.quantity import IDS_TIME, MEMORY, TEXT_TIME, Quantity
from use_st5.resources.resource_point import ResourcePoint
from use_st5.resources.resource_record import ResourceRecord

COLUMNS = (
    "words",
    "model",
    "ids",
    TEXT_TIME.title,
    "ratio",
    IDS_TIME.title,
    "ratio",
    "working memory, MB",
    MEMORY.title,
    "ratio",
)
UNKNOWN = "unknown"


def rows(record: ResourceRecord, device: str) -> list[tuple[str, ...]]:
    """A row for each length and model on a device: medians, quartiles, ratios to the first model.

    The time from a text that the model cuts is marked so.
    """
    order = {model.name: place for place, model in enumerate(record.models)}
    points = [point for point in record.points if point.device == device]
    points.sort(key=lambda point: (point.length, order[point.model]))
    return [_row(record, point) for point in points]


def markdown(record: ResourceRecord) -> str:
    """The tables of all devices and the crossing points, with what the figures mean."""
    parts = ["# Compute time and memory against the length of a text", _preface(record)]
    for device in record.devices:
        name = record.gpu if device == "gpu" else record.setting["processor"]
        parts += [f"## {device.upper()}: {name}", _table(COLUMNS, rows(record, device))]
    headings, cells = crossing_table(record)
    if cells:
        parts += ["## Crossing points", _table(headings, cells)]
    return "\n\n".join(parts) + "\n"


def crossing_table(record: ResourceRecord) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Headings and rows of the crossing points; no row where nothing is known."""
    headings = ("device", "quantity", "model", f"against {record.models[0].name}")
    return headings, [tuple(each.values()) for each in record.crossings()]


def _preface(record: ResourceRecord) -> str:
    setting = record.setting
    models = [
        (
            model.name,
            f"{model.parameters:,}",
            f"{model.parameter_bytes / 1e6:.1f}",
            "none" if model.max_length is None else str(model.max_length),
        )
        for model in record.models
    ]
    headings = ("model", "parameters", "parameters, MB", "tokens read at most")
    return (
        f"Batches of {setting['batch_size']}, {setting['threads']} thread(s), TensorFlow "
        f"{record.versions['tensorflow']}. Milliseconds a text, median (quartiles); ratios to "
        f"{record.models[0].name}. From a text a model reads no more tokens than its limit (cut); "
        "from ids nothing is cut. Working memory: the peak of TensorFlow's tensors in a call on "
        "ids above the loaded model.\n\n" + _table(headings, models)
    )


def _row(record: ResourceRecord, point: ResourcePoint) -> tuple[str, ...]:
    model = record.model(point.model)
    cut = model.max_length is not None and point.tokens > model.max_length
    working = UNKNOWN
    if None not in point.working_bytes:
        working = _number(statistics.median(point.working_bytes) / 1e6)
    memory = record.values(point, MEMORY)
    return (
        str(point.length),
        point.model,
        str(point.tokens),
        _spread(record, point, TEXT_TIME) + (" cut" if cut else ""),
        _ratio(record, point, TEXT_TIME),
        _spread(record, point, IDS_TIME),
        _ratio(record, point, IDS_TIME),
        working,
        UNKNOWN if memory is None else _number(MEMORY.per_unit * statistics.median(memory)),
        _ratio(record, point, MEMORY),
    )


def _spread(record: ResourceRecord, point: ResourcePoint, quantity: Quantity) -> str:
    values = quantity.per_unit * np.asarray(record.values(point, quantity))
    low, middle, high = np.percentile(values, [25, 50, 75])
    return f"{_number(middle)} ({_number(low)}-{_number(high)})"


def _ratio(record: ResourceRecord, point: ResourcePoint, quantity: Quantity) -> str:
    ratio = record.ratio(point, quantity)
    return UNKNOWN if ratio is None else _number(ratio)


def _number(value: float) -> str:
    """Three digits or so."""
    return f"{value:,.{2 if value < 10 else 1 if value < 100 else 0}f}"


def _table(headings: Sequence[str], cells: Sequence[Sequence[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *cells]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
