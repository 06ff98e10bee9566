"""An order of an epoch in which no batch contains the same text twice."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from use_st5.losses.in_batch_softmax import key_factors

_HASHED_AT_ONCE = 2**16


def row_keys(ids: np.ndarray) -> np.ndarray:
    """The key of each row of ids `[n, length]` (see `key_factors`): int64 `[n]`.

    Two different rows that share a key are merely kept apart.
    """
    factors = key_factors(ids.shape[1])
    parts = (ids[i : i + _HASHED_AT_ONCE] for i in range(0, len(ids), _HASHED_AT_ONCE))
    return np.concatenate([part.astype(np.int64) @ factors for part in parts])


class DistinctBatches:
    """Arranges examples in batches within which no two have an equal key.

    The batches are cut from the given order; every example but the first with its key is taken out
    of its batch. Those taken out, and those that the cut left over, then fill the holes: where they
    fit; where they do not, by changing places with one that does. What still finds no place (its
    key is more frequent than there are batches) is left out of the epoch, and examples of other
    batches stand in for it.

    Args:
        order: A permutation of the examples.
        keys: For each column, the key of every example, `[examples]`.
        batch_size: Examples of a batch, at most all.
    """

    def __init__(self, order: np.ndarray, keys: Sequence[np.ndarray], batch_size: int) -> None:
        self.order = order
        self.keys = keys
        cut = len(order) // batch_size * batch_size
        self.batches = order[:cut].reshape(-1, batch_size).copy()
        self._empty = np.logical_or.reduce([_repeated(key[self.batches]) for key in keys])
        self._holes = self._empty.sum(axis=1)
        self._waiting = np.concatenate([self.batches[self._empty], order[cut:]])
        self._holders = [self._batches_by_key(key) for key in keys]
        self._first_stand_in = 0

    def arrange(self) -> np.ndarray:
        """The examples batch by batch, `[batches · batch_size]`.

        Raises:
            ValueError: No examples were found to fill a batch with.
        """
        stuck = [row for row in self._waiting.tolist() if not self._insert(row)]
        for row in stuck:
            if self._holes.any():
                self._exchange(row)
        for batch in np.flatnonzero(self._holes).tolist():
            self._stand_in(batch)
        return self.batches.reshape(-1)

    def _batches_by_key(self, key: np.ndarray) -> dict[int, set[int]]:
        """Which batches hold each key of those that wait."""
        holders: dict[int, set[int]] = {value: set() for value in key[self._waiting].tolist()}
        held = key[self.batches]
        batches, places = np.nonzero(np.isin(held, key[self._waiting]) & ~self._empty)
        for batch, value in zip(batches.tolist(), held[batches, places].tolist(), strict=True):
            holders[value].add(batch)
        return holders

    def _insert(self, row: int) -> bool:
        """Puts a waiting row into the emptiest batch that it fits into; says whether there is."""
        holes = np.where(self._fits_into(row), self._holes, 0)
        batch = int(holes.argmax())
        if holes[batch]:
            self._put(row, batch, int(self._empty[batch].argmax()))
        return bool(holes[batch])

    def _exchange(self, row: int) -> None:
        """Puts a waiting row in the place of one that fits into a batch with a hole."""
        into = int(self._holes.argmax())
        for batch in np.flatnonzero(self._fits_into(row)).tolist():
            movable = self._fitting(self.batches[batch], into) & ~self._empty[batch]
            if movable.any():
                place = int(movable.argmax())
                moved = int(self.batches[batch, place])
                for holders, key in zip(self._holders, self.keys, strict=True):
                    holders.get(int(key[moved]), set()).discard(batch)
                self._put(moved, into, int(self._empty[into].argmax()))
                self._holes[batch] += 1  # Which the row fills.
                self._put(row, batch, place)
                return

    def _stand_in(self, batch: int) -> None:
        """Fills a batch's holes with examples that other batches hold too."""
        size = self.batches.shape[1]
        candidates = np.roll(self.order, -self._first_stand_in)
        self._first_stand_in += size  # Others for the next batch.
        for start in range(0, len(candidates), size):
            rows = candidates[start : start + size]
            rows = rows[self._fitting(rows, batch)]
            rows = rows[~np.logical_or.reduce([_repeated(key[rows]) for key in self.keys])]
            places = np.flatnonzero(self._empty[batch])[: len(rows)]
            self.batches[batch, places] = rows[: len(places)]
            self._empty[batch, places] = False
            if not self._empty[batch].any():
                return
        raise ValueError(
            f"Expected {size} different examples for a batch, found "
            f"{size - self._empty[batch].sum()} among {len(self.order)}. Choose a smaller batch."
        )

    def _fits_into(self, row: int) -> np.ndarray:
        """The batches that hold none of a waiting row's keys: bool `[batches]`."""
        fits = np.ones(len(self.batches), bool)
        for holders, key in zip(self._holders, self.keys, strict=True):
            batches = holders[int(key[row])]
            if len(batches) == len(fits):  # Often so, and then quickly said.
                return np.zeros(len(fits), bool)
            fits[list(batches)] = False
        return fits

    def _fitting(self, rows: np.ndarray, batch: int) -> np.ndarray:
        """Which rows have none of the keys that a batch holds: bool `[rows]`."""
        held = self.batches[batch, ~self._empty[batch]]
        return ~np.logical_or.reduce([np.isin(key[rows], key[held]) for key in self.keys])

    def _put(self, row: int, batch: int, place: int) -> None:
        self.batches[batch, place] = row
        self._empty[batch, place] = False
        self._holes[batch] -= 1
        for holders, key in zip(self._holders, self.keys, strict=True):
            if int(key[row]) in holders:
                holders[int(key[row])].add(batch)


def _repeated(keys: np.ndarray) -> np.ndarray:
    """Whether an earlier entry of the last axis is the same: bool like `keys`."""
    order = np.argsort(keys, axis=-1, kind="stable")
    ordered = np.take_along_axis(keys, order, axis=-1)
    same = np.zeros(keys.shape, bool)
    same[..., 1:] = ordered[..., 1:] == ordered[..., :-1]
    repeated = np.empty_like(same)
    np.put_along_axis(repeated, order, same, axis=-1)
    return repeated
