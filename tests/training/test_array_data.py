from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from use_st5.data.arrays import ArrayData
from use_st5.training.tensorflow_step import array_dataset


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


def test_no_thread_tunes_the_pipeline() -> None:
    """Such a thread sleeps for up to a minute, and a training would wait for it at its end."""
    assert array_dataset(numbered(), 4, seed=0).options().autotune.enabled is False


def test_memory_maps_keep_shapes_and_types(tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", np.arange(24, dtype=np.float16).reshape(8, 3))
    data = ArrayData({"v": np.load(tmp_path / "v.npy", mmap_mode="r")})
    stream = array_dataset(data, 4, seed=0)
    assert stream.element_spec["v"].shape == (4, 3)
    row = next(iter(stream))["v"].numpy()[0]
    assert row.dtype == np.float16
    assert row[1] == row[0] + 1


def test_impossible_arrays_and_batches_are_refused() -> None:
    for options in ({"batch_size": 12}, {"batch_size": 0}, {"batch_size": 4, "replica_count": 3}):
        with pytest.raises(ValueError, match="batch_size: expected a multiple of"):
            array_dataset(numbered(), seed=0, **options)
    grouped = ArrayData({"x": np.zeros(12, np.int32)}, group_size=3)
    with pytest.raises(ValueError, match="a multiple of 3 up to 12, received 4"):
        grouped.check_batch(4)
    with pytest.raises(ValueError, match="group_size: expected a part of 11"):
        ArrayData({"x": np.zeros(11, np.int32)}, group_size=3)
    for arrays in ({"x": np.zeros(3), "y": np.zeros(4)}, {"x": np.zeros((0, 2))}):
        with pytest.raises(ValueError, match="arrays of one length"):
            ArrayData(arrays)


def texts(lengths: list[int], width: int) -> np.ndarray:
    """Ids `[texts, width]`: text n repeats the id n + 1 `lengths[n]` times."""
    numbers = np.arange(1, len(lengths) + 1, dtype=np.int32)[:, None]
    return np.where(np.arange(width) < np.array(lengths)[:, None], numbers, 0).astype(np.int32)


def pairs() -> ArrayData:
    """Forty pairs of one to sixteen ids; the second text of each is short."""
    lengths = np.random.default_rng(0).integers(1, 17, 40)
    return ArrayData(
        {
            "first": texts([*lengths], 16),
            "second": texts([3] * 40, 5),
            "label": np.arange(40, dtype=np.int32),
        },
        buckets=(4, 8, 16),
    )


def test_batches_of_like_lengths_are_cut_to_few_widths() -> None:
    data = pairs()
    stream = array_dataset(data, 4, seed=7).take(20)
    seen, widths = [], []
    for batch in stream:
        rows = batch["label"].numpy()
        seen += [*rows]
        widths.append(batch["first"].shape[1])
        assert batch["second"].shape[1] == min(widths[-1], 5)
        for name in ("first", "second"):  # Nothing but padding is cut.
            whole = data.arrays[name][rows]
            np.testing.assert_array_equal(batch[name], whole[:, : batch[name].shape[1]])
            assert not whole[:, batch[name].shape[1] :].any()
    assert sorted(seen[:40]) == sorted(seen[40:]) == [*range(40)], "each once in an epoch"
    assert seen[:40] != seen[40:]
    assert {*widths} == {4, 8, 16}
    assert widths[:10] != sorted(widths[:10]), "widths come mixed"
    # At most two of ten batches hold texts of two buckets: those at the end of a bucket.
    longest = np.count_nonzero(data.arrays["first"], axis=1)
    buckets = np.searchsorted([4, 8, 16], longest)
    assert sum(len({*buckets[seen[i : i + 4]]}) > 1 for i in range(0, 40, 4)) <= 2
    assert stream.element_spec["first"].shape == (4, None)


def test_batches_of_like_lengths_are_functions_of_seed_and_step() -> None:
    whole = [batch["label"].numpy() for batch in array_dataset(pairs(), 4, seed=7).take(25)]
    rest = array_dataset(pairs(), 4, seed=7, start_step=13).take(12)
    np.testing.assert_array_equal([batch["label"].numpy() for batch in rest], whole[13:])
    other = [pairs().batch(step, 4, seed=8)["label"] for step in range(25)]
    assert (np.stack(other) != np.stack(whole)).any()


def test_the_replicas_of_a_step_have_the_width_of_its_whole_batch() -> None:
    """Also if a batch holds texts of two buckets: replicas gather ids from each other."""
    data, parts = pairs(), {"replica_count": 2, "replicas": range(2)}
    stream = array_dataset(data, 4, seed=7, **parts).take(20)
    found = list(stream.as_numpy_iterator())
    crossed = 0
    for step, replicas in enumerate(zip(found[::2], found[1::2], strict=True)):
        whole = data.batch(step, 4, seed=7)
        assert {each["first"].shape[1] for each in replicas} == {whole["first"].shape[1]}
        rows = sorted(row for each in replicas for row in each["label"])
        assert rows == sorted(whole["label"])
        longest = [np.count_nonzero(each["first"], axis=1).max() for each in replicas]
        crossed += len({*np.searchsorted([4, 8, 16], longest)}) > 1
    assert crossed


def test_what_does_not_fill_a_batch_is_drawn_from_all_lengths() -> None:
    """Otherwise only the longest texts would be left out."""
    data = ArrayData({"x": texts([1] * 5 + [9] * 5, 9)}, buckets=(1, 9))
    first = [data.batch(step, 4, 0)["x"][:, 0] for step in range(60)]
    epochs = [np.concatenate(first[n : n + 2]) for n in range(0, 60, 2)]
    left_out = {5 - sum(text <= 5 for text in epoch) for epoch in epochs}
    assert left_out == {0, 1, 2}


@pytest.mark.parametrize("options", [{"buckets": (4, 8)}, {"buckets": (16, 8)}])
def test_impossible_buckets_are_refused(options: dict) -> None:
    with pytest.raises(ValueError, match="ascending widths up to 9"):
        ArrayData({"x": texts([1, 9, 3, 2], 12)}, **options)
