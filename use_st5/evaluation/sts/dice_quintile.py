"""A fifth of a set of sentence pairs by how many words they share."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DiceQuintile:
    """How well similarities follow the gold scores among pairs that share about as many words.

    Attributes:
        dice_from: The lowest Dice coefficient of its pairs, in `[0, 1]`.
        dice_to: The highest; the next quintile may begin with the same value.
        pairs: Number of pairs.
        spearman: Spearman's rank correlation of cosine and gold score; NaN where it is undefined.
        pearson: Pearson's correlation.
    """

    dice_from: float
    dice_to: float
    pairs: int
    spearman: float
    pearson: float
