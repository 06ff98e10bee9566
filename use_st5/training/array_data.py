"""Shuffled batches out of arrays, addressable by step."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import tensorflow as tf

_PREFETCH = 4


class ArrayData:
    """Equal-length arrays (or memory maps) as an endless, shuffled, resumable stream of batches.

    Batch k depends on nothing but the arrays, the batch size, the seed and k: each epoch is a fresh
    permutation drawn from (seed, epoch), and what does not fill a batch at its end is left for
    another epoch. A resumed run therefore starts at any step at no cost.

    Args:
        arrays: `[examples, …]` arrays by feature name, numeric, all of one length.

    Raises:
        ValueError: There is no array, an array is empty, of another length or not numeric.
    """

    def __init__(self, arrays: Mapping[str, np.ndarray]) -> None:
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
        self._epoch: tuple[tuple[int, int], np.ndarray] | None = None

    def __len__(self) -> int:
        """Number of examples."""
        return self.size

    def dataset(
        self,
        batch_size: int,
        *,
        seed: int,
        start_step: int = 0,
        replica_count: int = 1,
        replicas: range = range(1),
        micro_batches: int = 1,
    ) -> tf.data.Dataset:
        """The batches from `start_step` on, without end.

        Args:
            batch_size: Examples of a batch over all replicas.
            seed: Of the shuffling.
            start_step: The first batch to give.
            replica_count: How many replicas share each batch.
            replicas: Whose parts to give, one element after the other, in this order.
            micro_batches: Into how many micro-batches a step cuts each batch. Each of them is
                shared by all replicas, so that it holds the same rows whatever their number.

        Returns:
            Dicts of tensors `[batch_size / replica_count, …]`.

        Raises:
            ValueError: The batch is larger than the data or cannot be cut into equal parts.
        """
        self._check_batch(batch_size, replica_count * micro_batches)
        part = batch_size // replica_count
        names = list(self.arrays)

        def rows_of(element: np.ndarray) -> list[np.ndarray]:
            step, local = divmod(int(element), len(replicas))
            rows = self.rows(start_step + step, batch_size, seed)
            rows = rows.reshape(micro_batches, replica_count, -1)[:, replicas[local]].reshape(-1)
            return [np.ascontiguousarray(self.arrays[name][rows]) for name in names]

        def load(element: tf.Tensor) -> dict[str, tf.Tensor]:
            types = [tf.as_dtype(self.arrays[name].dtype) for name in names]
            values = tf.numpy_function(rows_of, [element], types, stateful=False)
            for name, value in zip(names, values, strict=True):
                value.set_shape([part, *self.arrays[name].shape[1:]])
            return dict(zip(names, values, strict=True))

        # One call at a time: the rows are read in order, and the epoch's permutation is kept once.
        elements = tf.data.Dataset.range(np.iinfo(np.int64).max)
        return elements.map(load, num_parallel_calls=1).prefetch(_PREFETCH)

    def rows(self, step: int, batch_size: int, seed: int) -> np.ndarray:
        """The examples of batch `step`, int `[batch_size]`."""
        epoch, batch = divmod(step, self.size // batch_size)
        permutation = self._permutation(seed, epoch)
        return permutation[batch * batch_size : (batch + 1) * batch_size]

    def _permutation(self, seed: int, epoch: int) -> np.ndarray:
        # One tuple, read and replaced as a whole: two data sets may ask from different threads.
        kept = self._epoch
        if kept is None or kept[0] != (seed, epoch):
            rows = np.arange(self.size, dtype=np.int32 if self.size < 2**31 else np.int64)
            kept = ((seed, epoch), np.random.default_rng([seed, epoch]).permutation(rows))
            self._epoch = kept
        return kept[1]

    def _check_batch(self, batch_size: int, parts: int) -> None:
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
