"""Classifiers without Keras, compared with Keras."""

from __future__ import annotations

import json
import types
from pathlib import Path

import numpy as np
import pytest

from use_st5.engines.classifier import SavedClassifier


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A classifier of five dimensions and three labels, as `use-st5 train` writes it."""
    import keras

    classes = keras.layers.Dense(3, activation="softmax", name="classes")
    head = keras.Sequential([keras.Input((5,)), classes])
    classes.bias.assign([1.0, -2.0, 0.5])
    head.save(tmp_path / "classifier.keras")
    (tmp_path / "classifier.json").write_text(json.dumps({"labels": ["a", "b", "c"]}))
    return tmp_path / "classifier.keras"


def encoder(dimension: int) -> types.SimpleNamespace:
    rows = np.random.default_rng(0).normal(size=(4, dimension)).astype(np.float32)
    return types.SimpleNamespace(dimension=dimension, encode=lambda texts: rows[: len(texts)])


def test_probabilities_are_those_of_keras(path: Path) -> None:
    import keras

    texts = ["one", "two", "three"]
    found = SavedClassifier(path, encoder(5)).probabilities(texts)
    expected = keras.saving.load_model(path)(encoder(5).encode(texts))
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_other_files_are_refused(path: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="expected a classifier of 6 dimensions"):
        SavedClassifier(path, encoder(6))
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ValueError, match="another or a damaged file"):
        SavedClassifier(path, encoder(5))
    with pytest.raises(FileNotFoundError):
        SavedClassifier(tmp_path / "absent.keras", encoder(5))
