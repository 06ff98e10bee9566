"""How well an encoder finds translations among other sentences."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class BUCCScore:
    """What the pairs with a margin of at least `threshold` are worth.

    Attributes:
        threshold: The least margin.
        precision: Share of these pairs that are gold, in 0 … 1.
        recall: Share of the gold pairs that are among them.
        f1: The harmonic mean of both.
    """

    threshold: float
    precision: float
    recall: float
    f1: float
