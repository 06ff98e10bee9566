"""Shuffled batches out of arrays, addressable by step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from use_st5.training.distinct_batches import DistinctBatches, row_keys


class ArrayData:
    """Equal-length arrays (or memory maps) as an endless, shuffled, resumable stream of batches.

    Batch k depends on nothing but the arrays, the batch size, the seed and k: each epoch is a fresh
    permutation drawn from (seed, epoch), and what does not fill a batch at its end is left for
    another epoch. A resumed run therefore starts at any step at no cost.

    Args:
        arrays: `[examples, …]` arrays by feature name, numeric, all of one length.
        distinct: Names of id arrays `[examples, length]` of which no batch shall hold two equal
            rows: in a batch of pairs an equal text is a false negative. Batches are then arranged
            anew for each epoch (see `DistinctBatches`); it shows every example once if it can.
        group_size: The examples come in groups of so many, one after the other, and a group stays
            together: for losses that compare the examples of a batch.

    Raises:
        ValueError: There is no array, an array is empty, of another length or not numeric,
            `distinct` names something else than id arrays or comes with groups, or the groups are
            not all full.
    """

    def __init__(
        self,
        arrays: Mapping[str, np.ndarray],
        *,
        distinct: Sequence[str] = (),
        group_size: int = 1,
    ) -> None:
        if not arrays:
            raise ValueError("Expected at least one array by name. Received an empty mapping.")
        for name, array in arrays.items():
            if not isinstance(array, np.ndarray) or array.dtype.kind not in "iuf":
                kind = getattr(array, "dtype", type(array).__name__)
                raise ValueError(
                    f"Expected '{name}' to be a NumPy array of integers or floats. Received: {kind}"
                )
        lengths = {name: array.shape[0] if array.ndim else 0 for name, array in arrays.items()}
        if len(set(lengths.values())) != 1 or 0 in lengths.values():
            raise ValueError(
                f"Expected arrays of one length, at least one example. Received lengths: {lengths}"
            )
        self.arrays = dict(arrays)
        self.size = next(iter(lengths.values()))
        if group_size < 1 or self.size % group_size or (distinct and group_size > 1):
            raise ValueError(
                f"Expected a group_size that divides {self.size} examples, without distinct. "
                f"Received: group_size={group_size}, distinct={list(distinct)}"
            )
        self.group_size = group_size
        self.distinct = tuple(distinct)
        self._keys = [self._row_keys(name) for name in distinct]
        self._epoch: tuple[tuple[int, int, int], np.ndarray] | None = None

    def __len__(self) -> int:
        """Number of examples."""
        return self.size

    def batch(self, step: int, batch_size: int, seed: int) -> dict[str, np.ndarray]:
        """The arrays of batch `step` by name, `[batch_size, …]`."""
        return self.take(self.rows(step, batch_size, seed))

    def take(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """Some examples by name, `[len(rows), …]`, in the order of the rows."""
        return {name: np.ascontiguousarray(array[rows]) for name, array in self.arrays.items()}

    def rows(self, step: int, batch_size: int, seed: int) -> np.ndarray:
        """The examples of batch `step`, int `[batch_size]`."""
        epoch, batch = divmod(step, self.size // batch_size)
        order = self._order(batch_size, seed, epoch)
        return order[batch * batch_size : (batch + 1) * batch_size]

    def check_batch(self, batch_size: int, *, seed: int, step: int = 0, parts: int = 1) -> None:
        """Checks that batches of a size can be made.

        Args:
            batch_size: Examples of a batch.
            seed: Of the shuffling.
            step: A batch whose epoch is tried out.
            parts: Into how many equal parts each batch is to be cut.

        Raises:
            ValueError: The batch is larger than the data or cannot be cut into equal parts, or
                so many distinct examples were not found.
        """
        if not 0 < batch_size <= self.size:
            raise ValueError(
                f"Expected a batch size from 1 to the number of examples, {self.size}. "
                f"Received: {batch_size}"
            )
        if batch_size % parts:
            raise ValueError(
                "Expected a batch size that the replicas and their micro-batches, "
                f"{parts} together, can share equally. Received: {batch_size}"
            )
        if batch_size % self.group_size:
            raise ValueError(
                f"Expected a batch size that is a multiple of the groups' size, {self.group_size}. "
                f"Received: {batch_size}"
            )
        self._order(batch_size, seed, step // (self.size // batch_size))  # May raise.

    def _order(self, batch_size: int, seed: int, epoch: int) -> np.ndarray:
        """The examples of an epoch's batches, one after the other."""
        # One tuple, read and replaced as a whole: two data sets may ask from different threads.
        kept, wanted = self._epoch, (batch_size, seed, epoch)
        if kept is None or kept[0] != wanted:
            dtype = np.dtype(np.int32 if self.size < 2**31 else np.int64)
            groups = np.arange(0, self.size, self.group_size, dtype=dtype)
            groups = np.random.default_rng([seed, epoch]).permutation(groups)
            order = (groups[:, None] + np.arange(self.group_size, dtype=dtype)).ravel()
            if self._keys:
                order = DistinctBatches(order, self._keys, batch_size).arrange()
            kept = self._epoch = (wanted, order)
        return kept[1]

    def _row_keys(self, name: str) -> np.ndarray:
        array = self.arrays.get(name)
        if array is None or array.ndim != 2 or array.dtype.kind not in "iu":
            held = {
                name: f"{array.dtype} {list(array.shape)}" for name, array in self.arrays.items()
            }
            raise ValueError(
                f"Expected distinct to name arrays of ids [examples, length]. Received: {name!r}; "
                f"the data holds {held}"
            )
        return row_keys(array)
