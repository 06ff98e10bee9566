"""One way to prepare data sets."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from use_st5.evaluation.data_folder import DataSource
from use_st5.evaluation.preparation.prepared_set import PreparedSet


@dataclass(frozen=True)
class Preparation:
    """What `use-st5 data prepare NAME` does.

    Attributes:
        name: NAME.
        writes: The folders it can write, relative to the data folder → their files.
        needs: What the folder it reads from has to hold, for people.
        sets: The folder it reads from → the sets that are there. None, where `reads_downloads` is
            False: the place where they lie by default.
        reads_downloads: Whether it cannot do without a folder to read from.
    """

    name: str
    writes: Mapping[str, tuple[str, ...]]
    needs: str
    sets: Callable[[Path | None], Iterator[PreparedSet]]
    reads_downloads: bool

    def gives(self, source: DataSource) -> bool:
        """Whether a data set is among what it can write."""
        files = [f"{folder}/{name}" for folder, names in self.writes.items() for name in names]
        return any(fnmatch.fnmatchcase(file, place) for file in files for place in source.places)
