"""One column of a batch that a loss reads."""

from __future__ import annotations

import dataclasses
from typing import Literal

Kind = Literal["ids", "label", "vector"]

# Of one example: an id column holds a row of ids, a label one integer, a vector a row of floats.
RANKS: dict[str, int] = {"ids": 2, "label": 1, "vector": 2}


@dataclasses.dataclass(frozen=True)
class Feature:
    """Name and kind of a column of the batch; the trainer checks it against the data.

    Attributes:
        name: Key in the batch.
        kind: `"ids"`: integers `[batch, length]`, 0 = padding; `"label"`: integers `[batch]`;
            `"vector"`: floats `[batch, size]`.
        size: The number of classes of a label, the width of a vector; None where any will do.
    """

    name: str
    kind: Kind
    size: int | None = None

    def __str__(self) -> str:
        expected = {
            "ids": "integers [batch, length]",
            "label": "integers [batch]" + (f" in 0…{self.size - 1}" if self.size else ""),
            "vector": f"floats [batch, {self.size or 'width'}]",
        }
        return f"{self.name}: {expected[self.kind]}"
