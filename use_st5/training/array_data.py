"""Shuffled batches of arrays; each is a function of seed and step."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence

import numpy as np

_MEASURED_AT_ONCE = 2**16


def check_shared(batch_size: int, **parts: int) -> None:
    """Refuses a batch size that cannot be divided into equal parts, such as `replicas=2`."""
    if batch_size % math.prod(parts.values()):
        product = " x ".join(f"{number} {kind}" for kind, number in parts.items())
        raise ValueError(f"batch_size: expected a multiple of {product}, received {batch_size}.")


def fitting_batch_size(wanted: int, rows: int, **parts: int) -> int:
    """The number of examples in a step: `wanted`, or fewer if the data set is smaller."""
    check_shared(wanted, **parts)
    divisor = math.prod(parts.values())
    if rows < divisor:
        raise ValueError(f"Expected at least {divisor} rows, one for each part. Received: {rows}")
    return min(wanted, rows // divisor * divisor)


def row_lengths(ids: np.ndarray) -> np.ndarray:
    """The number of ids before the padding of each row: `[rows, length]` → int `[rows]`."""
    return ((ids != 0) * np.arange(1, ids.shape[1] + 1)).max(axis=1, initial=0)


class ArrayData:
    """Equal-length arrays (or memory maps) as an endless, shuffled, resumable stream of batches.

    Batch k depends only on the arrays, the batch size, the seed and k: each epoch is a new
    permutation drawn from (seed, epoch). Examples at its end that do not fill a batch are left for
    another epoch. A resumed run can therefore start at any step at no cost.

    Args:
        arrays: `[examples, …]` arrays by feature name, numeric, all of one length.
        group_size: Number of consecutive examples that form a group and stay together, for losses
            that compare the examples of a batch.
        buckets: Widths of batches, ascending. A batch then has texts of similar lengths ("smart
            batching"). Its ids, which are all integer arrays `[examples, length]`, are cut to the
            smallest of these widths that holds them; a compiler makes a program for each width.
            Batches of all widths come in mixed order.
    """

    def __init__(
        self,
        arrays: Mapping[str, np.ndarray],
        *,
        group_size: int = 1,
        buckets: Sequence[int] = (),
    ) -> None:
        lengths = {name: len(array) for name, array in arrays.items()}
        if len(set(lengths.values())) != 1 or 0 in lengths.values():
            raise ValueError(f"Expected arrays of one length above 0, received lengths {lengths}.")
        self.arrays = dict(arrays)
        self.size = next(iter(lengths.values()))
        if group_size < 1 or self.size % group_size:
            raise ValueError(f"group_size: expected a part of {self.size}, received {group_size}.")
        self.group_size = group_size
        self.buckets = tuple(buckets)
        self._ids = [
            n for n, each in self.arrays.items() if each.ndim == 2 and each.dtype.kind == "i"
        ]
        self._bucket_of = self._buckets_of_rows() if buckets else None
        self._epoch: tuple[tuple[int, int, int], np.ndarray] | None = None

    def __len__(self) -> int:
        """The number of examples."""
        return self.size

    def batch(
        self, step: int, batch_size: int, seed: int, *, part: np.ndarray | None = None
    ) -> dict[str, np.ndarray]:
        """The arrays of batch `step` by name, `[batch_size, …]`.

        A part of a batch has the width of the whole batch: replicas gather ids from each other.

        Args:
            step: The number of the batch.
            batch_size: Examples of the whole batch.
            seed: The seed of the shuffling.
            part: Positions in the batch whose examples are taken, in this order; None: all.
        """
        rows = self.rows(step, batch_size, seed)
        return self.take(rows if part is None else rows[part], batch=rows)

    def take(self, rows: np.ndarray, *, batch: np.ndarray | None = None) -> dict[str, np.ndarray]:
        """The arrays of some examples by name, `[len(rows), …]`, in the order of the rows.

        If there are buckets, ids are cut to the width that holds all texts of the `batch`.
        """
        columns = {name: array[rows] for name, array in self.arrays.items()}
        if self._bucket_of is not None:
            batch_rows = rows if batch is None else batch
            width = self.buckets[self._bucket_of[batch_rows].max()]
            columns |= {name: columns[name][:, :width] for name in self._ids}
        return {name: np.ascontiguousarray(array) for name, array in columns.items()}

    def row_shape(self, name: str, *, width: int | None = None) -> tuple[int | None, ...]:
        """The shape of an example in an array; the width of ids in buckets is `width`, or None."""
        shape = self.arrays[name].shape[1:]
        if not self.buckets or name not in self._ids:
            return shape
        return (None if width is None else min(width, *shape),)

    def fingerprint(self, names: Sequence[str]) -> str:
        """SHA-256 of some arrays, the group size and the buckets; takes a second for a gigabyte."""
        digest = hashlib.sha256()
        settings = [self.group_size, list(self.buckets)]
        kinds = {name: [self.arrays[name].dtype.str, self.arrays[name].shape] for name in names}
        digest.update(json.dumps([settings, kinds]).encode())
        for array in (self.arrays[name] for name in names):
            for start in range(0, self.size, _MEASURED_AT_ONCE):
                digest.update(array[start : start + _MEASURED_AT_ONCE].tobytes())
        return digest.hexdigest()

    def rows(self, step: int, batch_size: int, seed: int) -> np.ndarray:
        """The positions of the examples of batch `step`, int `[batch_size]`."""
        epoch, batch = divmod(step, self.size // batch_size)
        order = self._order(batch_size, seed, epoch)
        return order[batch * batch_size : (batch + 1) * batch_size]

    def check_batch(self, batch_size: int, *, parts: int = 1) -> None:
        """Checks that batches of a size can be made, and cut into a number of equal parts."""
        unit = math.lcm(self.group_size, parts)
        if not 0 < batch_size <= self.size or batch_size % unit:
            wanted = f"expected a multiple of {unit} up to {self.size}"
            raise ValueError(f"batch_size: {wanted}, received {batch_size}.")

    def _order(self, batch_size: int, seed: int, epoch: int) -> np.ndarray:
        """The positions of the examples of an epoch's batches, one after the other."""
        # One tuple, read and replaced as a whole: two data sets may call from different threads.
        entry, key = self._epoch, (batch_size, seed, epoch)
        if entry is None or entry[0] != key:
            dtype = np.dtype(np.int32 if self.size < 2**31 else np.int64)
            groups = np.arange(0, self.size, self.group_size, dtype=dtype)
            generator = np.random.default_rng([seed, epoch])
            groups = generator.permutation(groups)
            order = (groups[:, None] + np.arange(self.group_size, dtype=dtype)).ravel()
            if self._bucket_of is not None:
                order = order[: self.size // batch_size * batch_size]
                by_bucket = order[np.argsort(self._bucket_of[order], kind="stable")]
                order = generator.permutation(by_bucket.reshape(-1, batch_size)).reshape(-1)
            entry = self._epoch = (key, order)
        return entry[1]

    def _buckets_of_rows(self) -> np.ndarray:
        """The position of the bucket that holds each example's longest text, `[examples]`."""
        lengths = np.zeros(self.size, np.int32)
        for start in range(0, self.size, _MEASURED_AT_ONCE):
            rows = slice(start, start + _MEASURED_AT_ONCE)
            for ids in (self.arrays[name][rows] for name in self._ids):
                lengths[rows] = np.maximum(lengths[rows], row_lengths(ids))
        widths = list(self.buckets)
        grouped = self.group_size > 1
        if grouped or widths != sorted({*widths}) or widths[0] < 1 or lengths.max() > widths[-1]:
            wanted = f"expected ascending widths up to {lengths.max()} ids, and no groups"
            raise ValueError(f"buckets: {wanted}, received {widths}.")
        return np.searchsorted(widths, lengths).astype(np.int16)
