"""What a run that is done leaves, and when it is done."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.toy_encoders import Toy
from use_st5.training.finished_run import (
    RESULT,
    Result,
    forget_result,
    model_hash,
    result_of,
    write_result,
)


@pytest.fixture
def target(toy_use_dan: Toy, tmp_path: Path) -> Path:
    """A model that was exported."""
    folder = Path(toy_use_dan.folders["float32"])
    (tmp_path / "tuned").symlink_to(folder, target_is_directory=True)
    return tmp_path / "tuned"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A run's folder with all that a run writes."""
    for name in (
        *("request.json", "encoder.keras", "prepared/a/ids.bin", "cross_encoder/use_st5.json"),
        *("checkpoints/checkpoint-000000003/state.json", "checkpoints/logs/events.1"),
        *("checkpoints/cycle_1/bi_encoder/best/weights", "checkpoints/batches/pairs-0/1"),
        *("checkpoints/thesis.txt", "notes/checkpoint-000000001"),
    ):
        (tmp_path / "tuned.run" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tuned.run" / name).write_text("x")
    return tmp_path / "tuned.run"


def result_for(target: Path) -> Result:
    scores = {"before": {"mrr": 0.25}, "after": {"mrr": 0.5}}
    return Result(model_hash(target), "mrr", 3, 9, scores, scores, ["classifier.keras"])


def test_what_nothing_reads_goes_and_the_result_stays(work: Path, target: Path) -> None:
    assert result_of(work, target) is None
    write_result(work, result_for(target))
    left = {path.relative_to(work).as_posix() for path in work.rglob("*") if path.is_file()}
    assert left == {
        *("request.json", RESULT, "cross_encoder/use_st5.json", "checkpoints/logs/events.1"),
        *("checkpoints/thesis.txt", "notes/checkpoint-000000001"),
    }
    assert result_of(work, target) == result_for(target)
    forget_result(work)
    assert result_of(work, target) is None


def test_a_run_whose_model_is_gone_or_another_is_not_done(
    work: Path, target: Path, toy_use_transformer: Toy
) -> None:
    write_result(work, result_for(target))
    target.unlink()
    assert result_of(work, target) is None
    with pytest.raises(FileNotFoundError, match="found none"):
        model_hash(target)
    target.symlink_to(Path(toy_use_transformer.folders["float32"]), target_is_directory=True)
    assert result_of(work, target) is None


def test_a_result_that_names_other_files_is_refused(work: Path, target: Path) -> None:
    write_result(work, result_for(target))
    record = json.loads((work / RESULT).read_text())
    record["classifiers"] = ["../../home/classifier.keras"]
    (work / RESULT).write_text(json.dumps(record))
    with pytest.raises(ValueError, match="Train again with --overwrite"):
        result_of(work, target)
