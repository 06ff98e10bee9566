"""The classifier that a file of texts and labels is for, over the encoder that was exported."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import keras
import numpy as np

from use_st5._files import atomic_path
from use_st5._remote_files import as_written
from use_st5.own_data.columns import LABELS
from use_st5.own_data.development import DevelopmentSet
from use_st5.own_data.survey import Survey, class_names, training_rows
from use_st5.training.recipe_run import write_json

# Passes of the head over vectors that are computed once, and steps at least; its rate.
_EPOCHS, _STEPS, _BATCH, _RATE = 20, 400, 16, 1e-2


def write_classifiers(
    surveys: Sequence[Survey],
    sets: Sequence[DevelopmentSet],
    encoder: Path,
    work: Path,
    *,
    seed: int,
) -> list[Path]:
    """Fits and writes a classifier for each file of texts and labels.

    The head that learnt with the encoder belongs to its last step, and what is exported is the
    best one. So a head is fitted anew, to the vectors of the exported encoder, which stays as it
    is: after `from use_st5.models.transfer import TransferModel`, which Keras does not import by
    itself, `keras.models.load_model(path, safe_mode=False)` gives the classifier (the file names
    the SavedModel, which Keras wants to be trusted). The names of its classes stand in a .json
    beside it.

    Args:
        surveys: The training files.
        sets: The rows that do not train.
        encoder: The folder of the exported encoder.
        work: Where classifiers go.
        seed: Of the head's initial weights and of the order of the texts.

    Returns:
        The files, one for each source with labels.
    """
    labelled = [found for found in surveys if found.source.kind is LABELS]
    paths = []
    for number, found in enumerate(labelled, start=1):
        name = "classifier" if len(labelled) == 1 else f"classifier_{number}"
        path = work / f"{name}.keras"
        _write(found, sets, encoder, path, seed)
        write_json(path.with_suffix(".json"), {"labels": class_names(found)})
        paths.append(path)
    return paths


def _write(
    found: Survey, sets: Sequence[DevelopmentSet], encoder: Path, path: Path, seed: int
) -> None:
    from use_st5.layers.saved_model_layer import SavedModelLayer
    from use_st5.models.transfer.transfer_model import TransferModel

    rows = [*training_rows(found, sets)]
    places = {name: place for place, name in enumerate(class_names(found))}
    keras.utils.set_random_seed(seed)
    model = TransferModel(len(places), sentence=SavedModelLayer(as_written(encoder)))
    features = model.features([row["text"] for row in rows])
    model.head.compile(keras.optimizers.Adam(_RATE), "sparse_categorical_crossentropy")
    labels = np.array([places[row["label"]] for row in rows])
    epochs = max(_EPOCHS, _STEPS * _BATCH // len(rows))
    model.head.fit(features, labels, epochs=epochs, batch_size=_BATCH, verbose=0)
    with atomic_path(path) as temporary:
        model.save(temporary)
