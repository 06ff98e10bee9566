"""What is measured at each length: compute time and memory."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """A cost of a model at a length.

    Attributes:
        name: Its key, also of files.
        title: What plots and tables call it, with the unit.
        per_unit: Numbers as measured (seconds, bytes) times this are in the title's unit.
        more: What a model is called that needs more of it.
        less: What one is called that needs less.
    """

    name: str
    title: str
    per_unit: float
    more: str
    less: str


TEXT_TIME = Quantity(
    name="text_time",
    title="text to vector, ms",
    per_unit=1e3,
    more="slower",
    less="faster",
)
IDS_TIME = Quantity(
    name="ids_time", title="ids to vector, ms", per_unit=1e3, more="slower", less="faster"
)
MEMORY = Quantity(
    name="memory",
    title="parameters + working memory, MB",
    per_unit=1e-6,
    more="needs more",
    less="needs less",
)
QUANTITIES = (TEXT_TIME, IDS_TIME, MEMORY)
