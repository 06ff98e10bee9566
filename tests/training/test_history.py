"""The curves of a run: what they show, where they are, and that they may be missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from use_st5 import plots
from use_st5.training.history import History, TensorBoardWriter, logged_losses, write_plot

HISTORY = History(
    step=20,
    evaluations=[{"step": 0, "mrr": 0.5}, {"step": 10, "mrr": 0.75}, {"step": 20, "mrr": 0.7}],
    best_step=10,
    best_score=0.75,
)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The folder of a run that made step 10 twice."""
    writer = TensorBoardWriter(tmp_path / "checkpoints" / "logs")
    for step, loss in ((5, 3.0), (10, 2.0), (10, 1.5)):
        writer.write(step, {"pairs/loss": loss, "learning_rate": 0.1})
    writer.flush()
    return tmp_path


def test_curves_are_of_the_losses_and_of_the_monitored_score(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures: list[Any] = []
    save = plots.save
    monkeypatch.setattr(
        plots, "save", lambda figure, path: (figures.append(figure), save(figure, path))
    )
    logs = run / "checkpoints" / "logs"
    assert (
        write_plot(HISTORY, run, "mrr", "step") == f"curves: {run / 'run.png'}; TensorBoard: {logs}"
    )
    assert (run / "run.png").read_bytes().startswith(b"\x89PNG")
    assert logged_losses(logs) == {"pairs": {5: 3.0, 10: 1.5}}
    (loss,), (score, exported) = (axes.lines for axes in figures[0].axes)
    assert loss.get_label() == "pairs"
    assert loss.get_xydata().tolist() == [[5, 3.0], [10, 1.5]]
    assert score.get_xydata().tolist() == [[0, 50], [10, 75], [20, 70]]
    assert exported.get_xdata() == [10, 10]
