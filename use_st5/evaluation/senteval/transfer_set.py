"""The data of one transfer task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from use_st5.evaluation.senteval.transfer_sample import TransferSample


@dataclass(frozen=True)
class TransferSet:
    """Samples, in any order; which parts there are decides on the validation.

    Attributes:
        name: For example "MR".
        train: The training samples; all samples where there is no test set.
        dev: Where there are samples to choose the regularisation on.
        test: Where there is a test set.

    Raises:
        ValueError: A part is there without samples, or dev is there without test.
    """

    name: str
    train: Sequence[TransferSample]
    dev: Sequence[TransferSample] | None = None
    test: Sequence[TransferSample] | None = None

    def __post_init__(self) -> None:
        if empty := [part for part, samples in self.parts().items() if not samples]:
            raise ValueError(f"{self.name}: expected samples, received none for {empty}.")
        if self.dev is not None and self.test is None:
            raise ValueError(f"{self.name}: expected test samples beside dev samples.")

    def parts(self) -> dict[str, Sequence[TransferSample]]:
        """Those of "train", "dev" and "test" that there are."""
        every = {"train": self.train, "dev": self.dev, "test": self.test}
        return {part: samples for part, samples in every.items() if samples is not None}
