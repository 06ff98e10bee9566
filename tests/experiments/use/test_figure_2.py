"""Time and memory of toys, and what the figure makes of made-up measurements."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.use import figure_2
from tests.toy_encoders import Toy

LENGTHS = (10, 100, 200)


@pytest.fixture
def probe(toy_use_transformer: Toy) -> figure_2.Probe:
    """A toy that reads 16 tokens."""
    return figure_2.Probe(str(toy_use_transformer.folders["float32"]), 2, None, gpu=False)


def record() -> dict[str, Any]:
    """Measurements of a 20 MB model of constant cost and a 10 MB model of quadratic cost."""
    points = [
        {
            "model": name,
            "length": length,
            "tokens": length,
            "text_seconds": [cost / 2, cost, 2 * cost],
            "ids_seconds": [cost / 2, cost, 2 * cost],
            "working_bytes": [None if name == "flat" and length == 200 else int(1e9 * cost)] * 3,
        }
        for length in LENGTHS
        for name, cost in (("flat", 1e-3), ("steep", length**2 * 1e-7))
    ]
    models = [
        {"name": "flat", "max_length": None, "parameter_bytes": 20_000_000},
        {"name": "steep", "max_length": 150, "parameter_bytes": 10_000_000},
    ]
    setting = {"processor": "p", "device": "cpu", "batch_size": 1, "threads": 1}
    return {"setting": setting, "models": models, "points": points}


def test_ids_are_not_cut(probe: figure_2.Probe) -> None:
    """Each id is the one that the model itself gives for the single word."""
    texts = figure_2.sentences(37, 2)
    assert len(set(texts)) == 2
    ids = probe.ids(texts).numpy()
    assert ids.shape == (2, 37)
    assert probe.encoder.model.preprocess(texts).shape == (2, 16)
    words = probe.encoder.model.preprocess(texts[1].split()).numpy()[:, 0]
    np.testing.assert_array_equal(ids[1], words)


def test_a_visit(probe: figure_2.Probe) -> None:
    visit = probe.visit(20)
    assert visit["tokens"] == 20
    assert visit["text_seconds"] > 0
    assert visit["ids_seconds"] > 0
    sizes = [each.numpy().nbytes for each in probe.encoder.model.variables]
    assert probe.facts()["parameter_bytes"] == sum(sizes)


def test_crossings() -> None:
    """A ratio of (n / 30)² crosses 1 at 30; a ratio that only comes near 1 does not cross it."""
    lengths = (10, 25, 77, 512)
    found = figure_2.crossings(lengths, [(n / 30) ** 2 for n in lengths])
    assert found == [pytest.approx(30)]
    twice = figure_2.crossings((10, 20, 40), (0.5, 2.0, 0.25))
    assert twice == [pytest.approx(math.sqrt(200)), pytest.approx(20 * 2 ** (1 / 3))]
    assert figure_2.crossings((10, 20, 40), (2.0, 1.5, 2.0)) == []


def test_the_table() -> None:
    """At 100 words both cost 1 ms; the steep model reads 150 tokens."""
    shown = figure_2.table(record())
    assert "| 100 | steep | 100 | 1 (0.75-1.5) | 1 | 1 (0.75-1.5) | 1 | 11 (11-11) |" in shown
    assert "| 200 | steep | 200 | 4 (3-6) cut | 4 | 4 (3-6) | 4 | 14 (14-14) |  |" in shown
    assert "- ids to vector, ms: steep crosses flat at this number of words: 100." in shown


@pytest.mark.end_to_end
@pytest.mark.process
def test_two_models_in_turn(tmp_path: Path, toy_use_dan: Toy, toy_use_transformer: Toy) -> None:
    models = [str(toy.folders["float32"]) for toy in (toy_use_dan, toy_use_transformer)]
    shown = figure_2.run(models, tmp_path, lengths=(20, 5), repeats=2)
    written = json.loads((tmp_path / "resources.json").read_text())
    assert [point["length"] for point in written["points"]] == [5, 5, 20, 20]
    assert all(len(point["ids_seconds"]) == 2 for point in written["points"])
    assert (tmp_path / "resources.md").read_text() == shown
