"""The arithmetic for a slice of chips, against values by hand and the page that shows it."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import tpu_arithmetic as arithmetic
from use_st5.models.t5.model import T5_PRESETS, T5Config

BASE = T5_PRESETS["t5_base"]
# One layer of width 2, one head of width 4: its matrices have 4 · 2 · 4 + 2 · 2 · 8 weights.
TINY = T5Config(10, 1, 2, 8, 1, 4)
ROUND = arithmetic.Chip(peak=1e6, utilization=0.5, memory=1e9, link=1e6, storage=1e6)


def training(batch: int, texts: int = 2) -> arithmetic.TrainingSize:
    return arithmetic.TrainingSize(name="pairs", steps=10, batch=batch, texts=texts)


def test_weights_are_the_published_ones() -> None:
    assert arithmetic.weights(BASE) == 110_218_368
    assert arithmetic.weights(T5_PRESETS["t5_11b"]) == 4_865_577_984


def test_operations_of_a_text() -> None:
    # 3 tokens: 2 · 3 · 64, attention 4 · 9 · 4, projection 2 · 2 · 768.
    assert arithmetic.forward_flops(TINY, 3) == 384 + 144 + 3072
    assert arithmetic.step_flops(TINY, 3, pieces=False) == 3 * 3600
    assert arithmetic.step_flops(TINY, 3, pieces=True) == 4 * 3600


def test_a_step_where_all_fits() -> None:
    found = arithmetic.step_on(ROUND, TINY, training(8), chips=4, length=3)
    count = arithmetic.weights(TINY)
    assert (found.rows, found.pieces, found.state) == (2, 1, 12 * count)
    assert found.activations == 4 * 1.25 * 4 * 3 * 46
    assert found.compute == pytest.approx(4 * 3 * 3600 / 5e5)
    # 3/4 of this: each gradient twice, and for each of 16 texts its vector three times and its ids.
    sent = 0.75 * (8 * count + 16 * 4 * (3 * 768 + 3))
    assert found.exchange == pytest.approx(sent / 1e6)
    assert found.checkpoint == pytest.approx(8 * count / 1e6 / 500)
    assert found.seconds == pytest.approx(found.compute + found.exchange + found.checkpoint)


def test_the_page_shows_what_the_command_prints(
    repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["tpu_arithmetic"])
    arithmetic.main()
    page = (repository / "docs" / "on_a_tpu.md").read_text(encoding="utf-8").splitlines()
    printed = capsys.readouterr().out.split("\n\n")
    assert len(printed) == 3
    for table in printed:
        lines = table.strip().splitlines()
        start = page.index(lines[0])
        assert page[start : start + len(lines)] == lines
