"""The page of a run: scores, curves and statistics that were given."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.test_page import Page, check_alone
from use_st5.training import run_page
from use_st5.training.history import History
from use_st5.training.reporter import TensorBoardWriter
from use_st5.training.run_page import _thinned, logged_losses, write_page

EVIL = "<b>a.tsv"


@pytest.fixture
def plan(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A plan of one file."""
    monkeypatch.setattr(run_page, "command_line", lambda plan, target: "use-st5 train start <x>")
    source = SimpleNamespace(name=f"data/{EVIL}", kind=SimpleNamespace(name="pairs"))
    stats = SimpleNamespace(
        source=source, rows=1200, kept=1000, left_out=200, repeated=3, lengths=np.array([3, 5, 40])
    )
    return SimpleNamespace(
        start="use_dan_en",
        stats=[stats],
        monitor="mrr",
        unit="step",
        arguments=SimpleNamespace(text_length=lambda limit: 32),
        encoder=SimpleNamespace(max_length=None),
        lines=lambda: iter(["  e.g. one | <two>"]),
    )


@pytest.fixture
def history() -> History:
    """Three evaluations; the second is the best."""
    scores = {0: 0.5, 10: 0.75, 20: 0.7}
    measured = [{"step": step, "mrr": score} for step, score in scores.items()]
    return History(step=20, evaluations=measured, best_step=10, best_score=0.75)


@pytest.fixture
def write(plan: Any, history: History, tmp_path: Path) -> Callable[[], Page]:
    def written() -> Page:
        scores = {
            "validation": {"before": {"mrr": 0.5}, "after": {"mrr": 0.75}},
            "test": {"before": {"mrr": 0.5}, "after": {"mrr": 0.49}},
        }
        given = (tmp_path, tmp_path / "tuned", scores, ["the best step was 10 of 20"], 61.4)
        line = write_page(plan, history, *given)
        assert line.startswith(f"page of the run: {tmp_path / 'run.html'}; TensorBoard: ")
        return Page((tmp_path / "run.html").read_text(encoding="utf-8"))

    return written


def test_the_page_shows_scores_and_data(write: Callable[[], Page]) -> None:
    page = write()
    check_alone(page)
    assert "use_dan_en was trained on 1,000 rows of 1 file for 20 steps, in 0:01:01." in page.text
    assert "The best step was 10 of 20." in page.text
    assert ["validation: mrr", "50.00", "75.00", "+25.00"] in page.rows
    assert ["test: mrr", "50.00", "49.00", "−1.00"] in page.rows
    assert [EVIL, "pairs", "1,200", "200", "3", "5", "40", "1"] in page.rows
    assert "e.g. one | <two>" in page.text
    assert "use-st5 train start <x>" in page.text


def test_curves_are_of_the_losses_and_of_the_monitored_score(
    write: Callable[[], Page], tmp_path: Path
) -> None:
    writer = TensorBoardWriter(tmp_path / "checkpoints" / "logs")
    for step, loss in ((5, 3.0), (10, 2.0), (10, 1.5)):
        writer.write(step, {"pairs/loss": loss, "learning_rate": 0.1})
    writer.flush()
    assert logged_losses(tmp_path / "checkpoints" / "logs") == {"pairs": {5: 3.0, 10: 1.5}}
    write()
    text = (tmp_path / "run.html").read_text(encoding="utf-8")
    said = [
        [
            mark.text
            for mark in ElementTree.fromstring(part.split("</svg>")[0] + "</svg>").iter("title")
        ]
        for part in text.split("<figure>")[1:]
    ]
    assert said == [["pairs: 3", "pairs: 1.5"], ["mrr: 50", "mrr: 75", "mrr: 70"]]
    assert ">exported</text>" in text


def test_long_curves_are_means_of_neighbours() -> None:
    assert _thinned([1.0, 2.0]) == (1.0, 2.0)
    thinned = _thinned(range(1000))
    assert len(thinned) == 200
    assert thinned[0] == 2.0
    assert np.mean(thinned) == pytest.approx(499.5)
