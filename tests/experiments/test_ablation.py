"""Tables of experiments."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from experiments.ablation import Ablation


class Row:
    """An experiment whose score is its seed."""

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
        strategy: str | None = None,
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
    assert "| two | 3 | 51.00 ± 1.00 |" in table
    assert "After 30 steps" in table
    ablation.run(tmp_path, tmp_path / "out")
    assert len(one.started) == 3, "what is complete is kept"
    ablation.run(tmp_path, tmp_path / "out", steps=10, seed=5)
    assert one.started[3] == ("one_10_5", 10, teacher)
    ablation.run(tmp_path, tmp_path / "shared", strategy="mirrored")
    assert one.strategies == [None] * 6 + ["mirrored"] * 3


def test_a_part_of_the_table(tmp_path: Path) -> None:
    one, two = Row(), Row()
    ablation = Ablation(rows={"one": one, "two": two})
    ablation.run(tmp_path, tmp_path / "out", seeds=1, rows=["two"])
    assert (len(one.started), len(two.started)) == (0, 1)
    scores = ablation.run(tmp_path, tmp_path / "out", seed=1, seeds=1)
    assert scores == pytest.approx({"one/pearson": 0.51, "two/pearson": 0.505}), "the first, too"
    table = (tmp_path / "out/table.md").read_text()
    assert "| one | 1 | 51.00 |" in table
    assert "| two | 2 | 50.50 ± 0.71 |" in table
    with pytest.raises(ValueError, match="rows: expected some of one, two, received .'three"):
        ablation.run(tmp_path, tmp_path / "out", rows=["three"])


def test_further_scores_stand_beside_and_are_made_once(tmp_path: Path) -> None:
    scored: list[Path] = []

    def further(data: Path, model: Path) -> dict[str, float]:
        scored.append(model)
        return {"mr": 0.7}

    ablation = Ablation(rows={"one": Row()}, seeds=2)
    ablation.run(tmp_path, tmp_path / "out")
    table = dataclasses.replace(ablation, further=further)
    means = table.run(tmp_path, tmp_path / "out")
    assert means == pytest.approx({"one/pearson": 0.505, "one/mr": 0.7}), "of what was there, too"
    table.run(tmp_path, tmp_path / "out")
    assert scored == [tmp_path / f"out/one_{seed}/model" for seed in (0, 1)]
    assert "| one | 2 | 50.50 ± 0.71 | 70.00 ± 0.00 |" in (tmp_path / "out/table.md").read_text()
