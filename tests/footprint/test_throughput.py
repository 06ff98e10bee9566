from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from use_st5.footprint import throughput
from use_st5.footprint.throughput import Speed, ThroughputRecord, measure_throughput
from use_st5.trainable_encoder import TrainableEncoder


def test_every_shape_is_measured_once_and_a_second_call_goes_on(
    exported: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, dan = tmp_path / "throughput.json", str(exported["dan"])
    shapes = {"tokens": (4, 8), "batch_sizes": (1, 3), "seconds": 0.0}
    told: list[tuple[int, int]] = []
    record = measure_throughput(
        [dan], path, **shapes, on_visit=lambda *each: told.append(each), command="a line"
    )
    assert [speed.cell[1:] for speed in record.speeds] == [(4, 1), (4, 3), (8, 1), (8, 3)]
    assert all(speed.sentences_per_second for speed in record.speeds)
    assert record.parameters == {dan: TrainableEncoder.load(dan).model.count_params()}
    assert (told[0], told[-1]) == ((0, 4), (4, 4))
    assert ThroughputRecord.read(path) == record

    monkeypatch.setattr(throughput, "_opened", None)  # Nothing is opened again.
    again = measure_throughput([dan], path, **shapes)
    assert again.speeds == record.speeds
    with pytest.raises(FileExistsError, match="another setting .dtype."):
        measure_throughput([dan], path, dtype="bfloat16", **shapes)


def test_a_speed_is_the_batch_over_the_median_call(
    exported: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(throughput, "_seconds_of_call", lambda call, seconds: 0.5)
    record = measure_throughput(
        [str(exported["dan"])], tmp_path / "t.json", tokens=(4,), batch_sizes=(8,)
    )
    assert record.speeds[0].sentences_per_second == 16.0


def test_a_batch_that_finds_no_room_is_said_and_other_errors_are_raised(
    exported: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tensorflow as tf

    errors = [tf.errors.ResourceExhaustedError(None, None, "OOM"), ValueError("else")]

    def fails(model: object) -> object:
        def call(ids: np.ndarray) -> np.ndarray:
            raise errors.pop(0)

        return call

    monkeypatch.setattr(throughput, "inference", fails)
    shape = {"tokens": (4,), "batch_sizes": (1,)}
    record = measure_throughput([str(exported["dan"])], tmp_path / "t.json", **shape)
    assert record.speeds[0].sentences_per_second is None
    with pytest.raises(ValueError, match="else"):
        measure_throughput([str(exported["dan"])], tmp_path / "u.json", **shape)


def test_a_named_shape_needs_no_weights(tmp_path: Path) -> None:
    pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")
    record = measure_throughput(
        ["fresh:t5_small"], tmp_path / "t.json", tokens=(2,), batch_sizes=(1,), seconds=0.0
    )
    # T5 paper, section 3.8: small has "about 60 million" with its decoder; the encoder alone here.
    assert 30e6 < record.parameters["fresh:t5_small"] < 60e6


@pytest.mark.parametrize("wrong", [{"tokens": ()}, {"batch_sizes": (0,)}])
def test_nonsense_is_refused(wrong: dict, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="of at least 1"):
        measure_throughput(["use_dan_en"], tmp_path / "t.json", **wrong)


def test_a_record_names_its_cells() -> None:
    speed = Speed(model="a", tokens=4, batch_size=2, sentences_per_second=3.0)
    assert speed.cell == ("a", 4, 2)
