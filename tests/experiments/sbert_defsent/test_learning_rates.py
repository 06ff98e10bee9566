"""The choice of a learning rate: the grid of the paper, and a choice at the size of a toy."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from experiments.sbert_defsent import learning_rates as selection
from experiments.sbert_defsent.train import (
    METHODS,
    defsent_rate,
    with_choice,
)
from tests.experiments.sbert_defsent import test_train as test_sbert_defsent


class Scored:
    """A training whose score is known: the second learning rate is the best over three seeds."""

    of_seeds = {1e-6: (0.9, 0.1, 0.1), 2e-6: (0.6, 0.7, 0.8), 4e-6: (0.5, 0.5, 0.6)}

    def __init__(self, rate: float, size: int) -> None:
        self.rate, self.size = rate, size

    def run(self, data: Path, output: Path, *, seed: int, **_: object) -> None:
        output.mkdir(parents=True)
        score = self.of_seeds[self.rate][seed] - self.size / 1000
        (output / "scores.json").write_text(json.dumps({selection.CHOSEN_BY: score}))


def test_the_highest_mean_over_three_seeds_is_chosen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not the highest single score; the batch size is chosen in the same way."""
    monkeypatch.setattr(selection, "_stage", lambda method, rate, published: rate)
    monkeypatch.setattr(selection, "_training", lambda rate, size, pooling: Scored(rate, size))
    means = selection.run(
        tmp_path,
        tmp_path / "out",
        pretrained=tmp_path,
        learning_rates=[*Scored.of_seeds],
        batch_sizes=(32, 16),
    )
    assert len(means) == 6
    chosen = json.loads((tmp_path / "out/chosen.json").read_text())
    score = pytest.approx(0.7 - 0.016)
    choice = {"method": "defsent", "learning_rate": 2e-6, "batch_size": 16}
    assert chosen == choice | {selection.CHOSEN_BY: score}
    # The training script reads it; SBERT's stage stays as it is.
    before = METHODS["s_d"].stages
    first, second = with_choice(before, tmp_path / "out/chosen.json")
    assert first == before[0]
    assert (second.args.learning_rate, second.tasks[0].batch_size) == (2e-6, 16)
    assert (second.args.schedule, second.freezes) == ("constant", True)
    with pytest.raises(ValueError, match="one of sbert, received one for defsent"):
        METHODS["sbert"].run(tmp_path, tmp_path / "run", chosen=tmp_path / "out/chosen.json")


def test_the_grid_holds_all_rates_that_defsents_authors_chose() -> None:
    grid = np.array(selection.LEARNING_RATES)
    assert len({f"{rate:.3g}" for rate in grid}) == len(grid), "each has a folder of its own"
    for model, ks in test_sbert_defsent.DEFSENT_K.items():
        for pooling in ks:
            assert np.isclose(grid, defsent_rate(model, pooling)).any()
