"""A model's results in a published table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class PublishedRow:
    """What a paper prints for one model.

    Attributes:
        model: Its name in the paper.
        scores: Task → score, in the unit of the table; a task that the paper leaves out is absent.
            "average" is the paper's own, as printed.
        settings: How the model was trained where the name does not tell; may be empty.
        source: Where the scores were read if not in the text of the paper; else empty.
        confirmed: False where nothing but a recollection of the paper supports the scores.
    """

    model: str
    scores: Mapping[str, float]
    settings: str = ""
    source: str = ""
    confirmed: bool = True
