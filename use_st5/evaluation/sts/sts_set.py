"""A set of sentence pairs in its parts."""

from __future__ import annotations

from dataclasses import dataclass

from use_st5.evaluation.sts.sts_pair import STSPair


@dataclass(frozen=True)
class STSSet:
    """A named test set.

    Attributes:
        name: For example "STS12".
        subsets: Name of a part (the source of its sentences) → its pairs.
    """

    name: str
    subsets: dict[str, list[STSPair]]

    @property
    def pairs(self) -> list[STSPair]:
        """The pairs of all subsets, in order."""
        return [pair for subset in self.subsets.values() for pair in subset]

    def __len__(self) -> int:
        """Number of pairs in all subsets."""
        return sum(map(len, self.subsets.values()))
