"""What is measured at each length of text, and where the costs of two models cross."""

from __future__ import annotations

import math
from collections.abc import Sequence
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


@dataclass(frozen=True)
class Crossing:
    """A length at which one model's cost passes another's.

    Attributes:
        length: In words.
        above: Whether the cost is the greater one beyond it.
    """

    length: float
    above: bool


def crossings(lengths: Sequence[float], ratios: Sequence[float]) -> tuple[Crossing, ...]:
    """The lengths at which a ratio of costs passes 1.

    Between two lengths the ratio is taken for a power of the length, that is for a straight line
    where both axes are logarithmic.

    Args:
        lengths: Increasing and positive.
        ratios: One positive number for each length.
    """
    found = []
    last = None
    for place, ratio in enumerate(ratios):
        if ratio == 1:
            continue
        if last is not None and (ratio > 1) != (ratios[last] > 1):
            found.append(Crossing(_passes_one(lengths, ratios, last), ratio > 1))
        last = place
    return tuple(found)


def _passes_one(lengths: Sequence[float], ratios: Sequence[float], start: int) -> float:
    """The length at which the ratio reaches 1 between the place `start` and the next one."""
    low, high = math.log(ratios[start]), math.log(ratios[start + 1])
    share = low / (low - high)
    return math.exp((1 - share) * math.log(lengths[start]) + share * math.log(lengths[start + 1]))


def describe_crossings(
    lengths: Sequence[float], ratios: Sequence[float], more: str, less: str
) -> str:
    """The crossing points in words.

    Args:
        lengths: As in `crossings`.
        ratios: As in `crossings`.
        more: What a ratio above 1 is called, for example "slower".
        less: What one below 1 is called.

    Returns:
        For example "faster up to 37 words, slower beyond", or "never within the range: slower from
        10 to 512 words".
    """
    found = crossings(lengths, ratios)
    if not found:
        sides = {ratio > 1 for ratio in ratios if ratio != 1}
        side = {True: more, False: less}[sides.pop()] if sides else "equal"
        return f"never within the range: {side} from {lengths[0]:g} to {lengths[-1]:g} words"
    parts = [f"{less if found[0].above else more} up to {found[0].length:.0f} words"]
    for one, following in zip(found, found[1:], strict=False):
        parts.append(f"{more if one.above else less} up to {following.length:.0f}")
    return ", ".join([*parts, f"{more if found[-1].above else less} beyond"])
