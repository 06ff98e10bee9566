from __future__ import annotations

import numpy as np
import pytest

from use_st5.training.array_data import ArrayData
from use_st5.training.distinct_batches import DistinctBatches, row_keys
from use_st5.training.task_stream import array_dataset


def pairs(anchors: list[int] | np.ndarray, positives: list[int] | np.ndarray) -> ArrayData:
    columns = {"anchor": np.asarray(anchors)[:, None], "positive": np.asarray(positives)[:, None]}
    return ArrayData(columns, distinct=("anchor", "positive"))


def epoch_of(data: ArrayData, batch_size: int, epoch: int = 0, seed: int = 0) -> np.ndarray:
    count = len(data) // batch_size
    steps = range(epoch * count, (epoch + 1) * count)
    return np.stack([data.rows(step, batch_size, seed) for step in steps])


def assert_distinct(data: ArrayData, batches: np.ndarray) -> None:
    for array in data.arrays.values():
        for batch in batches:
            assert len(np.unique(array[batch], axis=0)) == len(batch)


@pytest.mark.parametrize("seed", range(20))
def test_no_batch_holds_an_anchor_or_a_positive_twice(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size, batch_size = int(rng.integers(40, 200)), int(rng.integers(2, 12))
    data = pairs(rng.zipf(1.5, size) % 60, rng.integers(0, 40, size))
    for epoch in range(2):
        batches = epoch_of(data, batch_size, epoch, seed)
        assert batches.shape == (size // batch_size, batch_size)
        assert_distinct(data, batches)


@pytest.mark.parametrize("seed", range(20))
def test_every_example_comes_once_where_no_key_is_too_frequent(seed: int) -> None:
    # Four batches of ten, ten texts four times each: every batch must hold each of them.
    texts = np.random.default_rng(seed).permutation(np.repeat(np.arange(10), 4))
    data = ArrayData({"anchor": texts[:, None]}, distinct=("anchor",))
    batches = epoch_of(data, 10, seed=seed)
    assert_distinct(data, batches)
    assert sorted(batches.reshape(-1)) == list(range(40))


def test_natural_inference_keeps_its_examples() -> None:
    # Three hypotheses for each premise, as SNLI has, and one hypothesis that is often true.
    anchors = np.repeat(np.arange(1000), 3)
    positives = np.where(np.arange(3000) % 250 == 0, 10_000, np.arange(3000))
    data = pairs(anchors, positives)
    batches = epoch_of(data, 128)
    assert_distinct(data, batches)
    assert len(np.unique(batches)) == batches.size == 23 * 128


def test_a_text_more_frequent_than_batches_comes_once_in_each() -> None:
    # Five batches of eight; the answer "yes" to 20 of 40 questions.
    positives = np.where(np.arange(40) < 20, 99, np.arange(40))
    data = pairs(np.arange(40), positives)
    batches = epoch_of(data, 8)
    assert_distinct(data, batches)
    assert ((batches < 20).sum(axis=1) == 1).all()
    assert set(range(20, 40)) <= set(batches.reshape(-1))  # the others come all, and some again


def test_data_without_repetitions_keeps_its_order() -> None:
    columns = {"anchor": np.arange(50)[:, None]}
    plain, distinct = ArrayData(columns), ArrayData(columns, distinct=("anchor",))
    np.testing.assert_array_equal(epoch_of(plain, 8, 3, 5), epoch_of(distinct, 8, 3, 5))


def test_a_start_at_any_step_continues_the_same_stream() -> None:
    rng = np.random.default_rng(3)
    anchors, positives = rng.integers(0, 30, (2, 60))

    def batches(start: int, count: int) -> list[np.ndarray]:
        stream = array_dataset(pairs(anchors, positives), 6, seed=1, start_step=start).take(count)
        return [np.hstack([batch["anchor"], batch["positive"]]) for batch in stream]

    whole = batches(0, 24)
    assert any((whole[i] != whole[i + 10]).any() for i in range(10))
    for start in (1, 10, 17):
        np.testing.assert_array_equal(batches(start, 24 - start), whole[start:])


def test_keys_are_those_of_the_ids_without_their_padding() -> None:
    ids = np.array([[3, 5, 0], [5, 3, 0], [3, 5, 1], [3, 5, 0]], np.int32)
    keys = row_keys(ids)
    assert keys[0] == keys[3]
    assert len(set(keys.tolist())) == 3
    np.testing.assert_array_equal(keys, row_keys(np.pad(ids, [(0, 0), (0, 4)]).astype(np.uint16)))


def test_keys_are_the_same_whether_hashed_together_or_apart() -> None:
    ids = np.random.default_rng(0).integers(0, 32_000, (2**16 + 5, 3))
    keys = row_keys(ids)
    np.testing.assert_array_equal(keys[-5:], row_keys(ids[-5:]))
    assert len(np.unique(keys)) == len(np.unique(ids, axis=0))


def test_a_batch_that_cannot_be_filled_is_refused_at_once() -> None:
    data = pairs(np.arange(40) % 5, np.arange(40))
    with pytest.raises(ValueError, match=r"8 different examples for a batch, found 5 among 40"):
        array_dataset(data, 8, seed=0)


@pytest.mark.parametrize("name", ["answer", "score"])
def test_names_of_other_than_ids_are_refused(name: str) -> None:
    columns = {"anchor": np.zeros((4, 2), np.int32), "score": np.zeros(4)}
    with pytest.raises(ValueError, match=rf"arrays of ids .* Received: '{name}'; the data holds"):
        ArrayData(columns, distinct=(name,))


def test_arranging_leaves_the_order_alone() -> None:
    order = np.arange(12)
    DistinctBatches(order, [np.arange(12) % 4], 3).arrange()
    np.testing.assert_array_equal(order, np.arange(12))
