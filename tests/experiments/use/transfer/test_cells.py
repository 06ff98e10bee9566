"""Batches and the search for hyper-parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from experiments.use.transfer.cells import batches, tune
from experiments.use.transfer.rows import Features, TransferRow

CNN = TransferRow(None, "cnn_w2v")


def features(count: int) -> Features:
    """Row i has the vector [i], 1 to 9 words with the id i + 1, and the label i."""
    rows = np.arange(count)
    words = np.where(np.arange(9) <= rows[:, None] % 9, rows[:, None] + 1, 0)
    return Features({"sentence": rows[:, None].astype(np.float32), "words": words}, rows)


@pytest.mark.parametrize("seed", [None, 0])
def test_batches_hold_every_text_once_at_its_length(seed: int | None) -> None:
    dataset = batches(features(150), seed=seed)
    assert dataset.cardinality() == 3
    seen, widths = [], []
    for inputs, labels in dataset.as_numpy_iterator():
        np.testing.assert_array_equal(inputs["sentence"][:, 0], labels)
        np.testing.assert_array_equal(inputs["words"][:, 0], labels + 1)
        lengths = (inputs["words"] > 0).sum(axis=1)
        np.testing.assert_array_equal(lengths, labels % 9 + 1)
        assert inputs["words"].shape[1] == lengths.max()
        widths.append(lengths.max())
        seen += labels.tolist()
    assert sorted(seen) == [*range(150)]
    assert len(set(widths)) > 1, "texts of similar length come together"
    again = [labels.tolist() for _, labels in dataset.as_numpy_iterator()]
    assert (sum(again, []) == seen) == (seed is None), "each epoch has its own order"


def test_sentence_vectors_alone() -> None:
    only = Features({"sentence": np.eye(70, dtype=np.float32)}, np.arange(70))
    ((first, _), (second, labels)) = batches(only).as_numpy_iterator()
    assert first["sentence"].shape == (64, 70)
    np.testing.assert_array_equal(second["sentence"].argmax(axis=1), labels)


@pytest.mark.end_to_end
def test_tuning_takes_the_best_trial() -> None:
    pytest.importorskip("keras_tuner")
    tried: list[dict[str, Any]] = []

    def score(chosen: dict[str, Any]) -> float:
        tried.append(chosen)
        return chosen["dropout"] + chosen["filters"] / 1000

    best = tune(CNN, score, trials=6, seed=0)
    assert len(tried) == 7
    assert best == max(tried, key=lambda chosen: chosen["dropout"] + chosen["filters"] / 1000)
    first_choice = tune(CNN, score, trials=0, seed=0)
    assert len(tried) == 7
    assert first_choice == tried[0]
    assert set(first_choice) == set(best)
    assert tune(CNN, lambda chosen: 0.5, trials=2, seed=0) == first_choice


def test_an_error_in_a_trial_ends_the_search() -> None:
    pytest.importorskip("keras_tuner")

    tried = []

    def fails(chosen: dict[str, Any]) -> float:
        tried.append(chosen)
        if len(tried) > 1:
            raise ValueError(f"no model of {sorted(chosen)}")
        return 0.5

    with pytest.raises(RuntimeError, match="no model of"):
        tune(CNN, fails, trials=2, seed=0)
