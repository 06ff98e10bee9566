"""One model at one length of text: all that was measured."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import msgspec

from use_st5._records import Count, Positive

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
class ResourcePoint:
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

    def with_visit(self, visit: Visit) -> ResourcePoint:
        """The point with one visit more."""
        grown = {name: (*getattr(self, name), value) for name, value in visit._asdict().items()}
        return dataclasses.replace(self, **grown)
