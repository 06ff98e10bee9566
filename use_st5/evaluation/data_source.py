"""Where an evaluation set comes from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DataSource:
    """A file or folder that a task reads, in the format it was published in.

    Attributes:
        name: What it is called, for example "STS12".
        places: Its paths as published, for example "STS12-en-test"; any of them will do. Each is
            looked for in the data folder and up to two folders deeper. A path may hold the
            wildcards of `pathlib.Path.glob`; it then stands for all files that match.
        origin: Where to get it: who publishes it, and the address.
        licence: Its licence as its publisher states it.
    """

    name: str
    places: tuple[str, ...]
    origin: str
    licence: str = "not stated"
