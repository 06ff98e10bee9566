"""The classifiers that `use-st5 train` wrote, without Keras."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from use_st5._imports import require
from use_st5.io.files import as_written, open_local
from use_st5.io.records import read_record

_WEIGHTS = "model.weights.h5"
_OVERHEAD = 2**20  # bytes of a file of weights beside the numbers; Keras's has some 10 KB
_REMEDY = "Name the classifier.keras of the folder TO.run that `use-st5 train` wrote."


class ClassifierRecord(msgspec.Struct):
    """The `.json` file next to a classifier: its classes, and the accuracy by evaluated set."""

    labels: list[str]
    accuracy: dict[str, float] = {}
    multi_label: bool = False


def chosen(probabilities: np.ndarray, labels: Sequence[str], *, several: bool) -> str | list[str]:
    """The most probable label of a text; with `several`, all with a probability above 0.5."""
    if several:
        return [labels[place] for place in np.flatnonzero(probabilities > 0.5).tolist()]
    return labels[int(probabilities.argmax())]


def read_labels(path: str | os.PathLike[str]) -> ClassifierRecord:
    """The record of the classifier in the `.keras` file `path`."""
    record = Path(path).with_suffix(".json")
    return read_record(record, ClassifierRecord, remedy=_REMEDY, limit=2**22)


def read_weights(
    path: str | os.PathLike[str], dimension: int, labels: int, *, where: str
) -> tuple[np.ndarray, np.ndarray]:
    """The kernel `[dimension, labels]` and the bias `[labels]` of a classifier.

    The file may be of a stranger: what lies in other files is refused, and nothing is read that is
    larger than expected. `where` names the file in messages.
    """
    h5py = require("h5py", "onnx")
    expected = {"0": (dimension, labels), "1": (labels,)}
    most = 4 * (dimension + 1) * labels + _OVERHEAD
    try:
        with zipfile.ZipFile(path) as archive:
            size = archive.getinfo(_WEIGHTS).file_size
            received = f"{size:,} bytes of weights"
            if size <= most:
                with h5py.File(io.BytesIO(archive.read(_WEIGHTS)), "r") as file:
                    arrays = {name: _inside(h5py, file, name) for name in expected}
                    shapes = {name: array.shape for name, array in arrays.items()}
                    received = f"weights of the shapes {[*shapes.values()]}"
                    if shapes == expected:
                        return arrays["0"][()], arrays["1"][()]
    except FileNotFoundError:
        raise
    except Exception as error:  # of zipfile, zlib and h5py
        reason = f"{type(error).__name__}: {str(error)[:200]}"
        raise ValueError(f"{where}: is no classifier, or damaged ({reason}). {_REMEDY}") from error
    expected_size = f"{dimension} dimensions and {labels} labels, received {received}"
    raise ValueError(f"{where}: expected a classifier of {expected_size}. Name its own encoder.")


def _inside(h5py: Any, file: Any, name: str) -> Any:
    """An array of floats whose numbers lie in the file itself, as Keras writes them."""
    node = file
    for part in ("layers", "dense", "vars", name):
        if not isinstance(node.get(part, getlink=True), h5py.HardLink):
            raise ValueError(f"{part} is no part of this file")
        node = node[part]
    # A chunk may be larger than its array.
    if node.dtype.kind != "f" or node.external or node.is_virtual or node.chunks:
        raise ValueError(f"array {name} is not stored as Keras stores floats")
    return node


class SavedClassifier:
    """Names the class of a text: `softmax(vector · kernel + bias)`.

    If a text may have several classes, it is `sigmoid` in place of `softmax`.

    Args:
        path: The `.keras` file; its labels are in the `.json` next to it.
        encoder: The encoder that it was made with.

    Attributes:
        encoder: The encoder.
        labels: The names of the classes, in the order of the outputs.
        multi_label: Whether a text has any number of classes.
        kernel: Float `[dimension, labels]`.
        bias: Float `[labels]`.
    """

    def __init__(self, path: str | os.PathLike[str], encoder: Any) -> None:
        self.encoder, record = encoder, read_labels(path)
        self.labels, self.multi_label = record.labels, record.multi_label
        shape = encoder.dimension, len(self.labels)
        with open_local(path) as local:
            self.kernel, self.bias = read_weights(local, *shape, where=as_written(path))
        if not all(np.isfinite(each).all() for each in (self.kernel, self.bias)):
            raise ValueError(f"{as_written(path)}: holds NaN or infinity. Train it again.")

    def probabilities(
        self, texts: str | bytes | Iterable[str | bytes], **options: Any
    ) -> np.ndarray:
        """The probability of each class, float32 `[texts, labels]`; `[labels]` for a single text.

        The arguments are those of `SentenceEncoder.encode`.
        """
        logits = self.encoder.encode(texts, **options) @ self.kernel + self.bias
        if self.multi_label:
            return np.asarray((1 + np.tanh(logits / 2)) / 2, np.float32)  # The sigmoid.
        powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
        return np.asarray(powers / powers.sum(axis=-1, keepdims=True), np.float32)
