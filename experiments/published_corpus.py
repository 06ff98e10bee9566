"""A published data set: its licence, its place in the data folder, and its reader."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from use_st5.data import DataFolder, DataSource

Example = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Corpus:
    """A published data set.

    Attributes:
        name: Its key in `CORPORA`.
        what: A description of its content.
        place: The pattern of its files for `pathlib.Path.glob`, in the data folder or up to two
            folders deeper.
        licence: Its licence, as its publisher states it.
        read: Files → examples; their keys are listed in `what`.
        other_places: Further patterns; only the files of the first pattern that matches are read.
    """

    name: str
    what: str
    place: str
    licence: str
    read: Callable[[list[Path]], Iterable[Example]]
    other_places: tuple[str, ...] = ()

    def files(self, data: Path) -> list[Path]:
        """Its files in a data folder."""
        origin = f"its publisher ({self.licence}); CORPORA in experiments.corpora lists all corpora"
        places = (self.place, *self.other_places)
        source = DataSource(f"{self.name}, {self.what}", places, origin, self.licence)
        return DataFolder(data).files(source)

    def examples(self, data: Path) -> Iterator[Example]:
        """A fresh pass over its examples."""
        return iter(self.read(self.files(data)))
