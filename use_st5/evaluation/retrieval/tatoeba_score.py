"""How many translations an encoder finds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TatoebaScore:
    """Accuracies in one language, each in 0 … 1.

    Attributes:
        pairs: Number of sentences and of their translations.
        to_english: Share of the foreign sentences whose nearest English one is theirs.
        from_english: Share of the English sentences whose nearest foreign one is theirs.
    """

    pairs: int
    to_english: float
    from_english: float

    @property
    def mean(self) -> float:
        """The mean of both directions."""
        return (self.to_english + self.from_english) / 2
