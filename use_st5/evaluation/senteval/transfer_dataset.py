"""The published files of one transfer task."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from use_st5.evaluation.data_folder import DataFolder, DataSource
from use_st5.evaluation.senteval.transfer_sample import TransferSample
from use_st5.evaluation.senteval.transfer_set import TransferSet

Read = Callable[[Path], list[TransferSample]]


@dataclass(frozen=True)
class TransferDataset:
    """Files and how each is read; samples of several files of a part follow each other.

    Attributes:
        name: For example "MR".
        train: Files with their readers.
        dev: Likewise; empty where there is no such part.
        test: Likewise.
    """

    name: str
    train: tuple[tuple[DataSource, Read], ...]
    dev: tuple[tuple[DataSource, Read], ...] = ()
    test: tuple[tuple[DataSource, Read], ...] = ()

    @property
    def sources(self) -> tuple[DataSource, ...]:
        """All files."""
        return tuple(source for source, _ in (*self.train, *self.dev, *self.test))

    def read(self, data: DataFolder) -> TransferSet:
        """Reads all files.

        Raises:
            MissingDataError: A file is missing; the message says how to get it.
            ValueError: A file is not in its format; the message names file and line.
        """
        parts = {
            part: [sample for source, read in files for sample in read(data.find(source))]
            for part, files in (("train", self.train), ("dev", self.dev), ("test", self.test))
            if files
        }
        return TransferSet(self.name, **parts)
