"""The data of one probing task."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

PARTS = ("train", "dev", "test")


@dataclass(frozen=True, eq=False)
class ProbingSet:
    """Sentences with the class of a property, in three parts.

    Attributes:
        classes: The names of the classes, sorted, as found in the training part.
        sentences: "train", "dev" and "test" → sentences.
        labels: The same → their class numbers, `[sentences]`.
    """

    classes: tuple[str, ...]
    sentences: dict[str, list[str]]
    labels: dict[str, np.ndarray]
