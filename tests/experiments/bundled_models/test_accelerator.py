"""The training of the bundled models on an accelerator: what travels, and what is mined."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from experiments.bundled_models import accelerator
from experiments.bundled_models.search_text import hard_negatives
from use_st5 import TrainableEncoder
from use_st5.hub.model_names import bundled_folder

TEXTS = ["A bee lives in a hive of 1,000 bees.", "", "Honey, isn't it?", "tea " * 40]


def test_files_travel_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accelerator, "_PART", 7)
    accelerator.write_parts(tmp_path, "texts", bytes(range(20)))
    assert [path.stat().st_size for path in sorted(tmp_path.iterdir())] == [7, 7, 6]
    assert accelerator.read_parts(tmp_path, "texts") == bytes(range(20))
    with pytest.raises(FileNotFoundError, match=r"other\.00"):
        accelerator.read_parts(tmp_path, "other")


def test_weights_keep_eight_bits_of_large_matrices(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    weights = [
        rng.standard_normal(shape).astype(np.float32) for shape in ((200, 60), (60,), (3, 4))
    ]
    accelerator.save_weights(tmp_path, "model", weights)
    loaded = accelerator.load_weights(tmp_path, "model")
    steps = np.abs(weights[0]).max(axis=1, keepdims=True) / 127
    assert (np.abs(loaded[0] - weights[0]) <= 0.5001 * steps).all()
    np.testing.assert_array_equal(loaded[1], weights[1])
    np.testing.assert_array_equal(loaded[2], weights[2])


@pytest.mark.parametrize(
    "name",
    ["use_transformer_en", pytest.param("st5_mini_en", marks=pytest.mark.end_to_end)],
)
def test_ids_are_those_of_the_encoder(tmp_path: Path, name: str) -> None:
    encoder = TrainableEncoder.load(name)
    (tmp_path / f"{name}.assets").symlink_to(bundled_folder(name) / "assets")
    (tmp_path / f"{name}.json").write_text(json.dumps({"tokenizer": encoder.tokenizer.kind}))
    expected = encoder.tokenizer.padded(TEXTS, max_tokens=64)
    for ids, row in zip(accelerator.text_ids(tmp_path, name, TEXTS, 64), expected, strict=True):
        np.testing.assert_array_equal(ids, np.asarray(row)[: len(ids)])
        assert not np.asarray(row)[len(ids) :].any()


def test_a_hard_negative_is_near_but_not_as_near_as_the_positive() -> None:
    pytest.importorskip("torch", reason="needs PyTorch (extra peers)")
    degrees = np.array([0, 20, 19, 40, 170, 100])  # two queries, and passages
    angles = np.radians(degrees)
    vectors = np.stack([np.cos(angles), np.sin(angles)], 1)
    pairs = np.array([[0, 1], [5, 2], [0, 3], [0, 4]])
    # 19 degrees are too near to the positive at 20; 40 degrees fit. Nothing is below 170 degrees.
    assert hard_negatives(vectors, pairs)[[0, 2, 3]].tolist() == [3, 4, 4]
