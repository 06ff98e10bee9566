"""Tables of recipes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from use_st5.training.ablation import Ablation


class Row:
    """A recipe whose score is its seed."""

    folders = ("teacher",)

    def __init__(self) -> None:
        self.started: list[tuple[str, int | None, Path]] = []
        self.strategies: list[str | None] = []

    def run(
        self,
        data: Path,
        output: Path,
        *,
        seed: int,
        steps: int | None,
        teacher: Path,
        strategy: str | None,
        **_: object,
    ) -> None:
        self.strategies.append(strategy)
        self.started.append((output.name, steps, teacher))
        output.mkdir(parents=True)
        (output / "scores.json").write_text(json.dumps({"pearson": 0.5 + seed / 100}))


def test_every_row_with_every_seed_once(tmp_path: Path) -> None:
    one, two = Row(), Row()
    ablation = Ablation(rows={"one": one, "two": two}, steps=30)
    scores = ablation.run(tmp_path, tmp_path / "out")
    teacher = tmp_path / "out/teacher"
    assert one.started == [(f"one_30_{seed}", 30, teacher) for seed in range(3)]
    assert scores == pytest.approx({"one/pearson": 0.51, "two/pearson": 0.51})
    table = (tmp_path / "out/table.md").read_text()
    assert "| two | 51.00 ± 1.00 |" in table
    assert "3 seeds, 30 steps" in table
    ablation.run(tmp_path, tmp_path / "out")
    assert len(one.started) == 3, "what is complete is kept"
    ablation.run(tmp_path, tmp_path / "out", steps=10, seed=5)
    assert one.started[3] == ("one_10_5", 10, teacher)
    ablation.run(tmp_path, tmp_path / "shared", strategy="mirrored")
    assert one.strategies == [None] * 6 + ["mirrored"] * 3
