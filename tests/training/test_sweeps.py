"""`sweep`: the trials, an interruption, failures, and what is written."""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.toy_encoders import Toy
from tests.training.test_train import FEW, paired, scored, write
from use_st5.training import sweeps
from use_st5.training.sweeps import sweep
from use_st5.training.train import train

pytest.importorskip("optuna", reason="the extra `sweep` is not installed")
SEARCH = {"learning_rate": (1e-4, 1e-1), "batch_size": [4, 8]}


@pytest.fixture
def start(toy_use_dan: Toy) -> str:
    return str(toy_use_dan.folders["float32"])


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    return write(tmp_path / "rows.csv", scored())


def interrupting(calls: int, error: BaseException) -> Callable[..., Any]:
    """`train`, which fails in its last call, after the training."""

    def run(*arguments: Any, **options: Any) -> Any:
        nonlocal calls
        calls -= 1
        trained = train(*arguments, **options)
        if calls == 0:
            raise error
        return trained

    return run


def test_an_interrupted_sweep_makes_the_same_trials_and_none_twice(
    start: str, rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = sweep(start, rows, tmp_path / "whole {?}#%", search=SEARCH, trials=3, **FEW)
    assert [trial.number for trial in whole.trials] == [0, 1, 2]
    assert whole.best.score == max(trial.score or 0 for trial in whole.trials)
    monkeypatch.setattr(sweeps, "train", interrupting(2, KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        sweep(start, rows, tmp_path / "cut", search=SEARCH, trials=3, **FEW)
    assert not (tmp_path / "cut").exists()
    lines: list[str] = []
    monkeypatch.setattr(sweeps, "train", train)
    cut = sweep(start, rows, tmp_path / "cut", search=SEARCH, trials=3, log=lines.append, **FEW)
    assert cut.trials == whole.trials
    assert any("already complete" in line for line in lines)  # The trial that was interrupted.
    # Only the best encoder is there, and its `run.toml` repeats its training.
    encoders = [path.parent.parent.name for path in cut.run.glob("trial_*/*/saved_model.pb")]
    assert encoders == [f"trial_{cut.best.number:03d}"]
    config = tomllib.loads((cut.run / encoders[0] / "cut.run" / "run.toml").read_text())
    assert config["learning_rate"] == cut.best.arguments["learning_rate"]
    again = train(config.pop("model"), config.pop("train"), tmp_path / "again", **{
        name: value for name, value in config.items() if name != "to"
    })  # fmt: skip
    assert again.after["spearman"] == pytest.approx(cut.best.score, abs=1e-6)
    with (cut.run / "sweep.csv").open() as file:
        assert [row["learning_rate"] for row in csv.DictReader(file)] == [
            str(trial.arguments["learning_rate"]) for trial in cut.trials
        ]
    assert (cut.run / "sweep.svg").read_text().startswith("<?xml")
    assert "load('cut')" in (cut.folder / "README.md").read_text()
    # More trials extend it; another search is another sweep.
    more = sweep(start, rows, tmp_path / "cut", search=SEARCH, trials=4, **FEW)
    assert more.trials[:3] == cut.trials
    with pytest.raises(FileExistsError, match="another search"):
        sweep(start, rows, tmp_path / "cut", search={"epochs": (1.0, 2.0)}, **FEW)
    with pytest.raises(FileExistsError, match="another search"):
        train(start, rows, tmp_path / "cut", **FEW)


def test_failed_trials_are_never_best(
    start: str, rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[str] = []
    monkeypatch.setattr(sweeps, "train", interrupting(1, FloatingPointError("Loss nan")))
    options: dict[str, Any] = {"search": {"seed": [0, 1]}, "log": lines.append, **FEW}
    result = sweep(start, rows, tmp_path / "m", trials=4, **options)
    failed = [trial for trial in result.trials if trial.error]
    assert failed[0].number == 0
    assert (failed[0].score, result.best.error) == (None, "")
    assert "trial 1 of 4: seed" in "".join(lines)
    # The arguments are drawn again, but trained only once.
    assert sum("trial_00" in line for line in lines) <= 2
    monkeypatch.setattr(sweeps, "train", interrupting(1, FloatingPointError("Loss nan")))
    with pytest.raises(ValueError, match="all trials failed.*Loss nan"):
        sweep(start, rows, tmp_path / "n", trials=1, **options)
    assert not (tmp_path / "n").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"search": {}}, "expected trials, and ranges"),
        ({"search": {"batch_siz": [1]}}, "Unknown argument 'batch_siz'"),
        ({"search": {"learning_rate": (0.0, 1.0)}}, "learning_rate: expected a number above 0"),
    ],
)
def test_wrong_searches_are_refused(
    options: dict[str, Any], message: str, start: str, rows: Path, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=message):
        sweep(start, rows, tmp_path / "m", **options)
    assert not (tmp_path / "m.run").exists()


def test_arguments_of_the_loss_are_searched(start: str, tmp_path: Path) -> None:
    pairs = write(tmp_path / "pairs.csv", paired())
    search = {"loss.temperature": (0.01, 0.5)}
    given = {"loss": {"bidirectional": True}, **FEW}
    result = sweep(start, pairs, tmp_path / "m", search=search, trials=1, **given)
    config = tomllib.loads((result.run / "trial_000" / "m.run" / "run.toml").read_text())
    temperature = result.best.arguments["loss.temperature"]
    assert config["loss"] == {"bidirectional": True, "temperature": temperature}
