"""What was measured: models, points, and the record of a run, which goes to a file."""

from __future__ import annotations

import dataclasses
import os
import statistics
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import msgspec

from use_st5._records import Count, Positive, read_record
from use_st5.evaluation.record import write_json
from use_st5.footprint.quantity import IDS_TIME, QUANTITIES, TEXT_TIME, Quantity, describe_crossings

# No machine is faster, and none waits longer: ratios of two are finite and positive.
Seconds = Annotated[float, msgspec.Meta(ge=1e-12, le=1e12)]


class Visit(NamedTuple):
    """What one visit to a model at a length gives.

    Attributes:
        text_seconds: Seconds a sentence from string to vector, as `SentenceEncoder.encode` does it;
            a model with a `max_length` cuts.
        ids_seconds: Seconds a sentence from ids to vector, of which none are cut.
        working_bytes: Peak of the tensors' memory in one call on ids, above the loaded model's;
            None where TensorFlow does not count (on a processor without oneDNN).
    """

    text_seconds: float
    ids_seconds: float
    working_bytes: int | None


@dataclass(frozen=True, kw_only=True)
class FootprintPoint:
    """The visits to a model at a length.

    Attributes:
        model: The model's name.
        device: "cpu" or "gpu".
        length: Words of a text.
        tokens: Ids of a text, none cut off.
        text_seconds: As in `Visit`, one per visit.
        ids_seconds: As in `Visit`, one per visit.
        working_bytes: As in `Visit`, one per visit.
    """

    model: str
    device: str
    length: Positive
    tokens: Positive
    text_seconds: tuple[Seconds, ...] = ()
    ids_seconds: tuple[Seconds, ...] = ()
    working_bytes: tuple[Count | None, ...] = ()

    @property
    def key(self) -> tuple[str, str, int]:
        """Device, model and length: what a record holds one point of."""
        return self.device, self.model, self.length

    @property
    def visits(self) -> int:
        """How often it was measured."""
        return len(self.ids_seconds)

    def with_visit(self, visit: Visit) -> FootprintPoint:
        """The point with one visit more."""
        grown: dict[str, Any] = {
            name: (*getattr(self, name), value) for name, value in visit._asdict().items()
        }
        return dataclasses.replace(self, **grown)


@dataclass(frozen=True, kw_only=True)
class MeasuredModel:
    """What a record says of a model.

    Attributes:
        name: Its name in tables.
        identity: A text that changes with the model's content.
        dimension: Dimension of the sentence vector.
        max_length: Tokens of a text beyond this number are not read; None: no limit.
        precision: How its table is stored.
        parameters: Number of its weights.
        parameter_bytes: Bytes of its variables in memory; 0 until it was loaded.
    """

    name: str
    identity: str
    dimension: Positive
    max_length: Positive | None
    precision: str
    parameters: Count
    parameter_bytes: Count = 0


FORMAT = 1
_LIMIT = 2**24


@dataclass(frozen=True, kw_only=True)
class FootprintRecord:
    """Time and memory of models at lengths of text.

    Attributes:
        created: When it was last added to, ISO 8601 in UTC.
        versions: Versions of Python and of the packages that ran the models.
        command: The command line; empty where Python code called.
        setting: All that figures depend on besides model, device and length: "batch_size",
            "threads", "processor", "cores".
        gpu: The GPU's name; None where none was found.
        models: In the order given; ratios are to the first.
        points: One for each device, model and length that was reached.
    """

    created: str
    versions: dict[str, str]
    command: str
    setting: dict[str, Any]
    gpu: str | None
    models: tuple[MeasuredModel, ...]
    points: tuple[FootprintPoint, ...]

    @property
    def devices(self) -> tuple[str, ...]:
        """Those with points, "cpu" before "gpu"."""
        return tuple(sorted({point.device for point in self.points}))

    def curve(self, device: str, model: str) -> list[FootprintPoint]:
        """A model's points on a device, short texts first."""
        points = (each for each in self.points if (each.device, each.model) == (device, model))
        return sorted(points, key=lambda point: point.length)

    def values(self, point: FootprintPoint, quantity: Quantity) -> list[float] | None:
        """What each visit gave, in seconds or bytes; None where TensorFlow does not count."""
        if quantity is TEXT_TIME:
            return list(point.text_seconds)
        if quantity is IDS_TIME:
            return list(point.ids_seconds)
        counted = [each for each in point.working_bytes if each is not None]
        if len(counted) < len(point.working_bytes):
            return None
        return [self.model(point.model).parameter_bytes + each for each in counted]

    def ratio(self, point: FootprintPoint, quantity: Quantity) -> float | None:
        """The cost to that of the first model at the same length.

        The median over the visits of their ratios: both were measured one after the other, so a
        neighbour's load met both. None where one of the two was not measured, or was nothing: no
        block of memory was large enough to be counted.
        """
        first = self.points_by_key().get((point.device, self.models[0].name, point.length))
        costs = self.values(point, quantity)
        bases = None if first is None else self.values(first, quantity)
        if not costs or not bases or not all((*costs, *bases)):
            return None
        return statistics.median(cost / base for cost, base in zip(costs, bases, strict=False))

    def crossing(self, device: str, model: str, quantity: Quantity) -> str | None:
        """In words, where a model's cost passes that of the first; None where nothing is known."""
        curve = self.curve(device, model)
        ratios = {point.length: self.ratio(point, quantity) for point in curve}
        known = {length: ratio for length, ratio in ratios.items() if ratio is not None}
        if not known:
            return None
        return describe_crossings(list(known), list(known.values()), quantity.more, quantity.less)

    def model(self, name: str) -> MeasuredModel:
        """The model of that name."""
        return next(model for model in self.models if model.name == name)

    def points_by_key(self) -> dict[tuple[str, str, int], FootprintPoint]:
        """The points by device, model and length."""
        return {point.key: point for point in self.points}

    def summary(self) -> dict[str, Any]:
        """Medians and crossing points, which the file repeats for its readers."""
        medians = [
            {
                "device": point.device,
                "model": point.model,
                "length": point.length,
                **{
                    quantity.name: statistics.median(values)
                    for quantity in QUANTITIES
                    if (values := self.values(point, quantity))
                },
            }
            for point in self.points
        ]
        return {"medians": medians, "crossings": self.crossings()}

    def crossings(self) -> list[dict[str, str]]:
        """Each "device", "quantity" and "model" with its crossing points in words, "crossing"."""
        return [
            {
                "device": device,
                "quantity": quantity.title.partition(",")[0],
                "model": model.name,
                "crossing": found,
            }
            for device in self.devices
            for quantity in QUANTITIES
            for model in self.models[1:]
            if (found := self.crossing(device, model.name, quantity))
        ]

    def content(self) -> dict[str, Any]:
        """All of it, as it is written."""
        return {"format": FORMAT, **dataclasses.asdict(self), "summary": self.summary()}

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes the record as JSON; the file appears when it is whole."""
        write_json(path, self.content())

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> FootprintRecord:
        """Reads a record.

        Raises:
            FileNotFoundError: There is no such file.
            ValueError: It is no record, or one of another format.
        """
        remedy = "Give a record that `use-st5 benchmark` wrote."
        record = read_record(path, cls, remedy=remedy, version=FORMAT, limit=_LIMIT)
        names = [model.name for model in record.models]
        if unknown := {point.model for point in record.points} - {*names}:
            raise ValueError(
                f"{os.fspath(path)}: $.points: expected points of the models {names}, received "
                f"some of {sorted(unknown)}. {remedy}"
            )
        return record
