"""Classifiers without Keras, compared with Keras."""

from __future__ import annotations

import io
import json
import types
import zipfile
from collections.abc import Callable
from pathlib import Path

import h5py
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
    with pytest.raises(ValueError, match="is no classifier, or damaged"):
        SavedClassifier(path, encoder(5))
    with pytest.raises(FileNotFoundError):
        SavedClassifier(tmp_path / "absent.keras", encoder(5))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_classifier_with_nan_names_no_class(value: float, path: Path) -> None:
    def spoil(file: h5py.File) -> None:
        file["layers/dense/vars/1"][1] = value

    replaced(path, spoil)
    with pytest.raises(ValueError, match="holds NaN or infinity"):
        SavedClassifier(path, encoder(5))


def replaced(path: Path, change: Callable[[h5py.File], None]) -> None:
    """Writes the classifier with other weights: those that `change` puts into the file."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    stream = io.BytesIO(parts["model.weights.h5"])
    with h5py.File(stream, "r+") as file:
        change(file)
    parts["model.weights.h5"] = stream.getvalue()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)


KERNEL = "layers/dense/vars/0"


def external(file: h5py.File) -> None:
    del file[KERNEL]
    file.create_dataset(KERNEL, (5, 3), "f4", external=[("/etc/passwd", 0, 60)])


def linked(file: h5py.File) -> None:
    del file[KERNEL]
    file[KERNEL] = h5py.ExternalLink("/tmp/other.h5", "kernel")


def virtual(file: h5py.File) -> None:
    del file[KERNEL]
    layout = h5py.VirtualLayout((5, 3), "f4")
    layout[:] = h5py.VirtualSource("/tmp/other.h5", "kernel", (5, 3))
    file.create_virtual_dataset(KERNEL, layout)


def declared(file: h5py.File) -> None:
    """8 GB of which no byte is stored."""
    del file[KERNEL]
    file.create_dataset(KERNEL, (2_000_000_000, 1), "f4")


def chunked(file: h5py.File) -> None:
    """A chunk of 1 GB, of which a file has some bytes."""
    del file[KERNEL]
    file.create_dataset(KERNEL, (5, 3), "f4", chunks=(2**14, 2**14), maxshape=(None, None))


def unpacked(file: h5py.File) -> None:
    file["more"] = np.zeros(2**23, np.float32)


@pytest.mark.parametrize("change", [external, linked, virtual, declared, chunked, unpacked])
def test_only_what_is_expected_is_read(path: Path, change: Callable[[h5py.File], None]) -> None:
    replaced(path, change)
    with pytest.raises(ValueError, match=r"classifier\.keras: (is no|expected a) classifier"):
        SavedClassifier(path, encoder(5))
    from use_st5.training import Classifier

    class OfFiveDimensions(Classifier):
        encoder = types.SimpleNamespace(dimension=5)

    with pytest.raises(ValueError, match=r"classifier\.keras: (is no|expected a) classifier"):
        _ = OfFiveDimensions(path, "", ["a", "b", "c"], {})._head
