"""A part of a checkpoint under shorter names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from use_st5.convert.weight_source import WeightSource


class RenamedSource(WeightSource):
    """Some tensors of another source, by other names.

    Args:
        source: The checkpoint.
        names: New name → name in the checkpoint; what is not among them is not seen.
    """

    def __init__(self, source: WeightSource, names: Mapping[str, str]) -> None:
        self.where = source.where
        self._source = source
        self._names = dict(names)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Name → shape of every tensor, without reading one."""
        shapes = self._source.shapes()
        return {new: shapes[old] for new, old in self._names.items()}

    def read(self, name: str) -> np.ndarray:
        """One tensor in the dtype it is stored in."""
        return self._source.read(self._names[name])

    def check_stored(self, names: Iterable[str]) -> None:
        """Holds the shapes of tensors against the bytes that are stored for them."""
        self._source.check_stored(self._names[name] for name in names)

    def pieces(self, name: str) -> Iterator[np.ndarray]:
        """One tensor in pieces along its first axis."""
        return self._source.pieces(self._names[name])
