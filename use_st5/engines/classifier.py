"""The classifiers that `use-st5 train` wrote, without Keras."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from use_st5._imports import require
from use_st5._records import read_record

_WEIGHTS = "model.weights.h5"
_REMEDY = "Name the classifier.keras of the folder TO.run that `use-st5 train` wrote."


class _Record(msgspec.Struct):
    labels: list[str]


class SavedClassifier:
    """Names the class of a text: `softmax(vector · kernel + bias)`.

    Args:
        path: The `.keras` file; its labels are in the `.json` next to it.
        encoder: The encoder that it was made with.

    Attributes:
        encoder: The encoder.
        labels: The names of the classes, in the order of the outputs.

    Raises:
        FileNotFoundError: There is no such file, or no `.json` next to it.
        ValueError: The file holds something else, or fits another encoder.
        ImportError: The package h5py is missing.
    """

    def __init__(self, path: str | os.PathLike[str], encoder: Any) -> None:
        self.encoder = encoder
        record = Path(path).with_suffix(".json")
        self.labels = read_record(record, _Record, remedy=_REMEDY, limit=2**22).labels
        h5py = require("h5py", "onnx")
        try:
            with (
                zipfile.ZipFile(path) as archive,
                h5py.File(io.BytesIO(archive.read(_WEIGHTS)), "r") as file,
            ):
                layer = file["layers/dense/vars"]
                self._kernel, self._bias = np.array(layer["0"]), np.array(layer["1"])
        except FileNotFoundError:
            raise
        except Exception as error:  # of zipfile, zlib and h5py
            raise ValueError(
                f"{path}: expected a classifier, received another or a damaged file "
                f"({type(error).__name__}). {_REMEDY}"
            ) from error
        shapes = self._kernel.shape, self._bias.shape
        if shapes != ((encoder.dimension, len(self.labels)), (len(self.labels),)):
            raise ValueError(
                f"{path}: expected a classifier of {encoder.dimension} dimensions and "
                f"{len(self.labels)} labels, received weights of the shapes {shapes}. Name the "
                "encoder that it was made with."
            )
        if not all(np.isfinite(each).all() for each in (self._kernel, self._bias)):
            raise ValueError(
                f"{path}: expected finite weights, found NaN or infinity. Train again."
            )

    def probabilities(self, texts: Iterable[str | bytes], **options: Any) -> np.ndarray:
        """The probability of each class, float32 `[texts, labels]`.

        Args:
            texts: As for `SentenceEncoder.encode`.
            **options: As for `SentenceEncoder.encode`.
        """
        logits = self.encoder.encode(texts, **options) @ self._kernel + self._bias
        powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
        return np.asarray(powers / powers.sum(axis=-1, keepdims=True), np.float32)
