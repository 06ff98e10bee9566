from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from use_st5.training.array_data import ArrayData
from use_st5.training.task_stream import array_dataset


def batches_of(data: ArrayData, count: int, **options: int) -> list[np.ndarray]:
    options = {"batch_size": 4, "seed": 7, **options}
    stream = array_dataset(data, options.pop("batch_size"), **options).take(count)
    return [batch["x"].numpy() for batch in stream]


def numbered(rows: int = 11) -> ArrayData:
    return ArrayData({"x": np.arange(rows, dtype=np.int32)})


def test_an_epoch_shows_every_example_at_most_once_and_epochs_differ() -> None:
    batches = batches_of(numbered(), 4)
    first, second = (np.concatenate(batches[i : i + 2]) for i in (0, 2))
    assert len(set(first)) == len(set(second)) == 8  # 3 of 11 do not fill a batch
    assert list(first) != list(second)
    assert list(first) != sorted(first)


def test_a_start_at_any_step_continues_the_same_stream() -> None:
    whole = np.stack(batches_of(numbered(), 9))
    for start in (1, 2, 5):
        np.testing.assert_array_equal(
            np.stack(batches_of(numbered(), 9 - start, start_step=start)), whole[start:]
        )


def test_a_far_step_costs_no_more_than_the_first() -> None:
    assert batches_of(numbered(), 1, start_step=10**12)[0].shape == (4,)


def test_the_seed_decides() -> None:
    same = [np.stack(batches_of(numbered(), 4)) for _ in range(2)]
    np.testing.assert_array_equal(*same)
    assert (np.stack(batches_of(numbered(), 4, seed=8)) != same[0]).any()


def test_groups_stay_together_and_change_places() -> None:
    data = ArrayData({"x": np.arange(12, dtype=np.int32)}, group_size=3)
    first, second = (
        np.concatenate(batches_of(data, 2, batch_size=6, start_step=i)) for i in (0, 2)
    )
    for epoch in (first, second):
        groups = epoch.reshape(4, 3)
        np.testing.assert_array_equal(groups, groups[:, :1] + np.arange(3))
        assert sorted(groups[:, 0]) == [0, 3, 6, 9]
    assert list(first) != list(second)


@pytest.mark.parametrize(
    ("rows", "options"), [(11, {"group_size": 3}), (12, {"group_size": 0}), (12, {"group_size": 3})]
)
def test_groups_that_cannot_be(rows: int, options: dict[str, int]) -> None:
    x = np.zeros((rows, 2), np.int32)
    distinct = ["x"] if rows == 12 and options["group_size"] else []
    with pytest.raises(ValueError, match="group_size"):
        ArrayData({"x": x}, distinct=distinct, **options)


def test_a_batch_holds_whole_groups() -> None:
    data = ArrayData({"x": np.arange(12, dtype=np.int32)}, group_size=3)
    with pytest.raises(ValueError, match="multiple of the groups' size, 3. Received: 4"):
        data.check_batch(4, seed=0)


def test_replicas_and_micro_batches_share_the_batch() -> None:
    data = numbered(16)
    whole = batches_of(data, 2, batch_size=8)
    options = {"batch_size": 8, "replica_count": 2, "micro_batches": 2}
    both = batches_of(data, 4, replicas=range(2), **options)
    second = batches_of(data, 2, replicas=range(1, 2), **options)
    for step in range(2):
        own, other = both[2 * step], both[2 * step + 1]
        # Micro-batch m of all replicas together is the m-th half of the batch.
        for micro in range(2):
            rows = np.concatenate([part[2 * micro : 2 * micro + 2] for part in (own, other)])
            np.testing.assert_array_equal(rows, whole[step][4 * micro : 4 * micro + 4])
        np.testing.assert_array_equal(second[step], other)


def test_memory_maps_keep_shapes_and_types(tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", np.arange(24, dtype=np.float16).reshape(8, 3))
    data = ArrayData({"v": np.load(tmp_path / "v.npy", mmap_mode="r")})
    stream = array_dataset(data, 4, seed=0)
    assert stream.element_spec["v"].shape == (4, 3)
    row = next(iter(stream))["v"].numpy()[0]
    assert row.dtype == np.float16
    assert row[1] == row[0] + 1


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({}, "at least one array"),
        ({"x": np.zeros(3), "y": np.zeros(4)}, "lengths: {'x': 3, 'y': 4}"),
        ({"x": np.zeros((0, 2))}, "lengths: {'x': 0}"),
        ({"x": np.array(["a"])}, "'x' to be a NumPy array of integers or floats"),
        ({"x": [1, 2]}, "'x' to be a NumPy array of integers or floats. Received: list"),
    ],
)
def test_impossible_arrays_are_refused(arrays: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("{", r"\{")):
        ArrayData(arrays)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 12}, "number of examples, 11. Received: 12"),
        ({"batch_size": 0}, "Received: 0"),
        ({"batch_size": 4, "replica_count": 3}, "3 together, can share equally. Received: 4"),
    ],
)
def test_impossible_batches_are_refused(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        array_dataset(numbered(), seed=0, **options)
