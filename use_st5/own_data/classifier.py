"""The classifier that a file of texts and labels is for, over the encoder that was exported."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import keras
import msgspec
import numpy as np

from use_st5._files import atomic_path
from use_st5._records import read_record
from use_st5._remote_files import as_written, here
from use_st5.own_data.columns import LABELS
from use_st5.own_data.development import DevelopmentSet
from use_st5.own_data.fitted_layers import fit_layers
from use_st5.own_data.run_folder import RUN, absolute
from use_st5.own_data.survey import Survey, training_rows
from use_st5.training.recipe_run import write_json


@dataclasses.dataclass(frozen=True)
class Classifier:
    """Names the class of a text.

    `train` writes one for each file of texts and labels: a `.keras` file of a `TransferModel` in
    the folder `TO.run`, and what its classes are called in a `.json` beside it. Keras loads the
    former with `keras.models.load_model(path, safe_mode=False)`, after `from
    use_st5.models.transfer import TransferModel`, from where it was written. `load` needs neither,
    runs no code out of the file, and finds the encoder where both folders were moved.

    Attributes:
        path: The `.keras` file.
        encoder: The folder of the encoder that it reads vectors of.
        labels: What its classes are called, in the order of its outputs.
        accuracy: Share of each development set's rows that it names right, by the set's name.

    Example:
        >>> classifier = Classifier.load("tuned.run/classifier.keras")
        >>> classifier.predict(["How far is it?"])
        ['NUM']
    """

    path: Path
    encoder: str
    labels: Sequence[str]
    accuracy: Mapping[str, float]

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], *, encoder: str | os.PathLike[str] | None = None
    ) -> Classifier:
        """What a training wrote.

        Args:
            path: The `.keras` file.
            encoder: The folder of its encoder; None: `TO`, beside the folder `TO.run` of the file.

        Raises:
            FileNotFoundError: There is no such file, or no `.json` beside it.
            ValueError: The latter holds something else, or the encoder is not known.
        """
        path = absolute(Path(path))
        remedy = "Name the classifier.keras of the folder TO.run that `use-st5 train` wrote."
        record = read_record(path.with_suffix(".json"), _Record, remedy=remedy)
        if encoder is None and path.parent.suffix != RUN:
            raise ValueError(
                f"{as_written(path)}: expected a file in a folder TO{RUN}, beside which the "
                "encoder TO lies. Say where it is: encoder=FOLDER."
            )
        where = as_written(encoder or path.parent.with_suffix(""))
        return cls(path, where, record.labels, record.accuracy)

    @cached_property
    def model(self) -> Any:
        """The `TransferModel` of strings, loaded."""
        model = _transfer_model(self.labels, self.encoder)
        with here(self.path) as local:
            model.load_weights(local)
        return model

    def predict(self, texts: Iterable[str]) -> list[str]:
        """The label of each text."""
        return [self.labels[place] for place in self.probabilities(texts).argmax(axis=1)]

    def probabilities(self, texts: Iterable[str]) -> np.ndarray:
        """Of each text, float32 `[texts, labels]`."""
        return _probabilities(self.model, texts)

    def line(self) -> str:
        """What is said of it when it was written."""
        where = as_written(self.path)
        right = ", ".join(f"{100 * part:.2f} on {name}" for name, part in self.accuracy.items())
        accuracy = f", accuracy {right}" if right else ""
        return (
            f"classifier: {where}{accuracy}; "
            f'use_st5.own_data.Classifier.load("{where}").predict(texts) names classes'
        )


def write_classifiers(
    surveys: Sequence[Survey],
    sets: Sequence[DevelopmentSet],
    encoder: Path,
    work: Path,
    *,
    seed: int,
) -> list[Classifier]:
    """Fits and writes a classifier for each file of texts and labels.

    The head that learnt with the encoder belongs to its last step, and what is exported is the
    best one. So a head is fitted anew, to the vectors of the exported encoder, which stays as it
    is.

    Args:
        surveys: The training files.
        sets: The rows that do not train.
        encoder: The folder of the exported encoder.
        work: Where classifiers go.
        seed: Of the head's initial weights.

    Returns:
        One for each source with labels.
    """
    labelled = [found for found in surveys if found.source.kind is LABELS]
    written = []
    for number, found in enumerate(labelled, start=1):
        name = "classifier" if len(labelled) == 1 else f"classifier_{number}"
        written.append(_write(found, sets, as_written(encoder), work / f"{name}.keras", seed))
    return written


def _write(
    found: Survey, sets: Sequence[DevelopmentSet], encoder: str, path: Path, seed: int
) -> Classifier:
    numbers, rows = found.label_numbers, [*training_rows(found, sets)]
    keras.utils.set_random_seed(seed)
    model = _transfer_model([*numbers], encoder)
    vectors = model.features([row["text"] for row in rows])["sentence"]
    labels = np.array([numbers[row["label"]] for row in rows])
    fit_layers([model.head.get_layer("classes")], vectors, labels, from_logits=False)
    accuracy = {}
    for each in sets:
        if each.labels_of == found.source.name and each.kind is LABELS:
            chosen = _probabilities(model, [row["text"] for row in each.rows]).argmax(axis=1)
            right = chosen == [numbers[row["label"]] for row in each.rows]
            accuracy[each.name] = float(np.mean(right))
    with atomic_path(path) as temporary:
        model.save(temporary)
    record = {"labels": [*numbers], "accuracy": accuracy}
    write_json(path.with_suffix(".json"), record)
    return Classifier(path, encoder, [*numbers], accuracy)


def _transfer_model(labels: Sequence[str], encoder: str) -> Any:
    from use_st5.layers.saved_model_layer import SavedModelLayer
    from use_st5.models.transfer.transfer_model import TransferModel

    return TransferModel(len(labels), sentence=SavedModelLayer(encoder))


def _probabilities(model: Any, texts: Iterable[str]) -> np.ndarray:
    return np.asarray(model.head(model.features(texts)))


class _Record(msgspec.Struct):
    """What stands beside a classifier's file."""

    labels: list[str]
    accuracy: dict[str, float] = {}
