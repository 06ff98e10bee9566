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


def test_activations_of_a_text() -> None:
    # 3 tokens, each with 4 · (2 + 4) + 2 · 8 + 2 · 3 · 1 numbers in float32, plus a quarter.
    assert arithmetic.activation_bytes(TINY, 3) == 1.25 * 4 * 3 * 46


def test_activations_are_near_those_of_the_compiler() -> None:
    """`python -m benchmarks.sharded_memory t5_base --devices 8 --batch 512`: 6.78 GB."""
    held = 512 / 8 * 2 * arithmetic.activation_bytes(BASE, 64)
    assert held == pytest.approx(6.78e9, rel=0.01)


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


def test_pieces_make_it_fit() -> None:
    count = arithmetic.weights(TINY)
    text = 1.25 * 4 * 3 * 46
    # The memory has room for GradCache's gradients and for the activations of four texts.
    chip = arithmetic.Chip(memory=(16 * count + 4 * text + 1) / 0.9)
    found = arithmetic.step_on(chip, TINY, training(16), chips=2, length=3)
    assert (found.pieces, found.state, found.activations) == (4, 16 * count, 4 * text)
    alone = arithmetic.step_on(chip, TINY, training(2), chips=2, length=3)
    assert (alone.pieces, alone.state) == (1, 12 * count)


def test_a_model_larger_than_a_chip_is_cut() -> None:
    chip = arithmetic.Chip(memory=1000.0)
    found = arithmetic.step_on(chip, TINY, training(8), chips=4, length=3)
    assert (found.pieces, found.activations, found.exchange) == (None, None, None)
    assert found.state == 4 * arithmetic.weights(TINY)
    assert found.seconds == found.compute + found.checkpoint


def test_the_stages_are_those_of_the_recipe() -> None:
    pairs, triplets = arithmetic.published_trainings()
    assert (pairs.name, pairs.batch, pairs.texts) == ("qa", 2048, 2)
    assert pairs.steps * pairs.batch == pytest.approx(2e9, rel=1e-3)
    assert (triplets.name, triplets.batch, triplets.texts) == ("nli", 512, 3)


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


@pytest.mark.parametrize("words", [["t5_giant"], ["--chips", "0"], ["--utilization", "-1"]])
def test_what_it_cannot_compute_it_refuses(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["tpu_arithmetic", *words])
    with pytest.raises(SystemExit):
        arithmetic.main()
    assert "expected" in capsys.readouterr().err
