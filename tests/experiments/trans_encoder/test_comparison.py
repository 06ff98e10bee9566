from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from experiments.trans_encoder import comparison


class Fake:
    """A variant whose scores follow from its seed."""

    def __init__(self, gain: float) -> None:
        self.gain = gain
        self.seeds: list[int] = []

    def run(self, data: Path, output: Path, *, seed: int, **given: Any) -> dict[str, float]:
        assert given["pretrained"] == Path("bert")
        self.seeds.append(seed)
        start, bi = 0.5 + seed / 100, 0.5 + seed / 100 + self.gain
        scores = {"start/stsb": start, "bi/stsb": bi, "start/pairs_mrpc": 0.6, "bi/pairs_mrpc": 0.7}
        output.mkdir(parents=True)
        (output / "scores.json").write_text(json.dumps(scores))
        return scores


@pytest.fixture
def variants(monkeypatch: pytest.MonkeyPatch) -> dict[str, Fake]:
    made = {"self": Fake(0.02), "self_more": Fake(0.04)}
    monkeypatch.setattr(comparison.trans_encoder, "VARIANTS", made)
    return made


def test_variants_and_seeds_come_into_one_table(variants: dict[str, Fake], tmp_path: Path) -> None:
    given: dict[str, Any] = {"pretrained": Path("bert"), "variants": [*variants]}
    scores = comparison.run(tmp_path, tmp_path / "out", seeds=2, **given)
    assert scores["self: bi/stsb"] == pytest.approx(0.525)
    lines = (tmp_path / "out/tables.md").read_text().splitlines()
    assert "| self: start | 2 | 50.50 ± 0.71 | 50.50 ± 0.71 |" in lines
    assert "| self_more: bi | 2 | 4.00 ± 0.00 | 4.00 ± 0.00 |" in lines, "the gain"
    assert "| self: bi | 2 | 70.00 ± 0.00 | 70.00 ± 0.00 |" in lines, "of pairs"
    # Existing runs are not made again; the next seed is added.
    comparison.run(tmp_path, tmp_path / "out", seeds=3, **given)
    assert [each.seeds for each in variants.values()] == [[0, 1, 2]] * 2


def test_a_variant_that_there_is_not_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"variants: expected some of self, .* received \['own'\]"):
        comparison.run(tmp_path, tmp_path / "out", variants=["own"])
