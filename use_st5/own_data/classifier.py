"""The classifier that a file of texts and labels is for, over the encoder that was exported."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import keras
import numpy as np

from use_st5._files import atomic_path
from use_st5._remote_files import as_written
from use_st5.own_data.columns import LABELS
from use_st5.own_data.development import DevelopmentSet
from use_st5.own_data.fitted_layers import fit_layers
from use_st5.own_data.sources import Row
from use_st5.own_data.survey import Survey, training_rows
from use_st5.training.recipe_run import write_json


@dataclasses.dataclass(frozen=True)
class Classifier:
    """A classifier that was written.

    Attributes:
        path: Its file. `keras.models.load_model(path, safe_mode=False)` gives the model after
            `from use_st5.models.transfer import TransferModel`, which Keras does not import by
            itself; the file names the SavedModel, which Keras wants to be trusted.
        accuracy: Share of each development set's rows that it names right, by the set's name.
    """

    path: Path
    accuracy: dict[str, float]

    def line(self) -> str:
        """What is said of it."""
        right = ", ".join(f"{100 * part:.2f} on {name}" for name, part in self.accuracy.items())
        return (
            f"classifier: {as_written(self.path)}"
            + (f", accuracy {right}" if right else "")
            + ", for keras.models.load_model(…, safe_mode=False) after `from "
            "use_st5.models.transfer import TransferModel`"
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
    is. The names of its classes, and how often it is right, stand in a .json beside it.

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
        made = _write(found, sets, encoder, work / f"{name}.keras", seed)
        record = {"labels": [*found.label_numbers], "accuracy": made.accuracy}
        write_json(made.path.with_suffix(".json"), record)
        written.append(made)
    return written


def _write(
    found: Survey, sets: Sequence[DevelopmentSet], encoder: Path, path: Path, seed: int
) -> Classifier:
    from use_st5.layers.saved_model_layer import SavedModelLayer
    from use_st5.models.transfer.transfer_model import TransferModel

    numbers = found.label_numbers
    keras.utils.set_random_seed(seed)
    model = TransferModel(len(numbers), sentence=SavedModelLayer(as_written(encoder)))

    def read(rows: Sequence[Row]) -> tuple[np.ndarray, np.ndarray]:
        vectors = model.features([row["text"] for row in rows])["sentence"]
        return vectors, np.array([numbers[row["label"]] for row in rows])

    fit_layers(
        [model.head.get_layer("classes")], *read([*training_rows(found, sets)]), from_logits=False
    )
    accuracy = {}
    for each in sets:
        if each.labels_of == found.source.name and each.kind is LABELS:
            vectors, labels = read(each.rows)
            probabilities = model.head.predict({"sentence": vectors}, verbose=0)
            accuracy[each.name] = float((probabilities.argmax(axis=1) == labels).mean())
    with atomic_path(path) as temporary:
        model.save(temporary)
    return Classifier(path, accuracy)
