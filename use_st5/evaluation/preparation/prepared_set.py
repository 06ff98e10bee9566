"""A data set on its way into the data folder."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PreparedSet:
    """One folder of files.

    Attributes:
        place: The folder, relative to the data folder, for example "SST/binary".
        files: Name → content.
    """

    place: str
    files: dict[str, bytes]
