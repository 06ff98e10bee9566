"""The classifier that a training on texts with labels makes."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import keras
import numpy as np

import use_st5
from use_st5.engines.classifier import read_weights
from use_st5.io.files import atomic_path
from use_st5.io.records import read_record
from use_st5.io.remote_files import as_written, exists, open_local
from use_st5.training.checkpoints import saving_quietly
from use_st5.training.class_record import LARGEST, ClassRecord, record_text
from use_st5.training.dataset_stats import DatasetStats
from use_st5.training.held_out import training_rows
from use_st5.training.linear_probe import fit_layers
from use_st5.training.run_folder import RUN, absolute
from use_st5.training.sources import Row
from use_st5.training.tasks import LABELS
from use_st5.training.validation import ValidationSet

if TYPE_CHECKING:
    from use_st5.encode.encoder import SentenceEncoder


@dataclasses.dataclass(frozen=True)
class Classifier:
    """Predicts the label of a text.

    `train` writes one for each file of texts and labels. A `.keras` file in the folder `TO.run`
    holds a `keras.Sequential` from the encoder's vectors, float32 `[batch, dimension]`, to
    probabilities `[batch, labels]`; a `.json` file next to it holds the labels. Keras alone can
    load the `.keras` file; behind a `SavedModelLayer` of the encoder it takes strings. `load` also
    finds the encoder, even if both folders were moved, and runs no code from the file.

    Attributes:
        path: The `.keras` file.
        folder: The folder of the encoder whose vectors it reads.
        labels: The names of its classes, in the order of its outputs.
        accuracy: Share of the rows of each test set that get the right label, by the set's name; of
            each validation set if there are no test sets.

    Examples:
        >>> classifier = Classifier.load("tuned.run/classifier.keras")
        >>> classifier.predict(["How far is it?"])
        ['NUM']
    """

    path: Path
    folder: str
    labels: Sequence[str]
    accuracy: Mapping[str, float]

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], *, encoder: str | os.PathLike[str] | None = None
    ) -> Classifier:
        """Loads the classifier of a training.

        Args:
            path: The `.keras` file.
            encoder: The folder of its encoder; None: `TO`, next to the folder `TO.run` of the file.

        Raises:
            FileNotFoundError: There is no such file, or no `.json` next to it.
            ValueError: The `.json` file holds something else, or the encoder is not known.
        """
        path = absolute(Path(path))
        remedy = "Name the classifier.keras of the folder TO.run that `use-st5 train` wrote."
        if path.suffix != ".keras":
            raise ValueError(
                f"{as_written(path)}: expected the name of a .keras file, received another one. "
                f"{remedy}"
            )
        if not exists(path):
            raise FileNotFoundError(f"{as_written(path)}: expected a file, found none. {remedy}")
        record = read_record(path.with_suffix(".json"), ClassRecord, remedy=remedy, limit=LARGEST)
        if encoder is None and path.parent.suffix != RUN:
            raise ValueError(
                f"{as_written(path)}: expected a file in a folder TO{RUN} next to the encoder TO. "
                "Give the encoder's folder: encoder=FOLDER."
            )
        folder = as_written(encoder or path.parent.with_suffix(""))
        return cls(path, folder, record.labels, record.accuracy)

    @cached_property
    def encoder(self) -> SentenceEncoder:
        """The encoder, loaded."""
        return use_st5.load(self.folder)

    def predict(
        self, texts: str | bytes | Iterable[str | bytes], **options: Any
    ) -> str | list[str]:
        """The labels of texts, or the label of a single text.

        Args:
            texts: As for `SentenceEncoder.encode`.
            **options: Further arguments of `encode`, such as `batch_size` and `on_truncation`.
        """
        places = self.probabilities(texts, **options).argmax(axis=-1)
        return [self.labels[place] for place in places] if places.ndim else self.labels[places]

    def probabilities(
        self, texts: str | bytes | Iterable[str | bytes], **options: Any
    ) -> np.ndarray:
        """The probabilities of the labels, float32 `[texts, labels]`; `[labels]` for a single text.

        The arguments are those of `predict`.
        """
        vectors = self.encoder.encode(texts, **options)
        probabilities = np.asarray(self._head(np.atleast_2d(vectors)))
        return probabilities[0] if vectors.ndim == 1 else probabilities

    def line(self) -> str:
        """The log line after the training."""
        location = as_written(self.path)
        scores = ", ".join(f"{100 * share:.2f} on {name}" for name, share in self.accuracy.items())
        accuracy = f", accuracy {scores}" if scores else ""
        return (
            f"classifier: {location}{accuracy}; use it with `use-st5 classify` or "
            "use_st5.training.Classifier"
        )

    @cached_property
    def _head(self) -> keras.Sequential:
        """The model from vectors to probabilities; a file that does not fit raises a ValueError."""
        head = _new_head(self.encoder.dimension, len(self.labels))
        shape = self.encoder.dimension, len(self.labels)
        with open_local(self.path) as local:
            head.set_weights(read_weights(local, *shape, where=as_written(self.path)))
        _check_finite(head, self.path, "Train again.")
        return head


def write_classifiers(
    stats: Sequence[DatasetStats],
    sets: Sequence[ValidationSet],
    tests: Sequence[ValidationSet],
    encoder: Path,
    work: Path,
    *,
    seed: int,
) -> list[Classifier]:
    """Fits and writes a classifier for each file of texts and labels.

    The head that was trained with the encoder belongs to the last step, but the exported encoder is
    that of the best step. So a new head is fitted to the vectors of the exported encoder (the
    folder `encoder`), which does not change. Its accuracy is measured on the test rows, or on the
    validation rows if there are no test rows.
    """
    labelled_stats = [
        file_stats for file_stats in stats if file_stats.source.kind.stands_in_for(LABELS)
    ]
    classifiers = []
    for number, file_stats in enumerate(labelled_stats, start=1):
        name = "classifier" if len(labelled_stats) == 1 else f"classifier_{number}"
        path, held_sets = work / f"{name}.keras", [*sets, *tests]
        classifiers.append(
            _write(file_stats, held_sets, tests or sets, as_written(encoder), path, seed)
        )
    return classifiers


def _write(
    found: DatasetStats,
    held: Sequence[ValidationSet],
    measured: Sequence[ValidationSet],
    encoder: str,
    path: Path,
    seed: int,
) -> Classifier:
    numbers = found.label_numbers
    classifier = Classifier(path, encoder, [*numbers], accuracy={})
    keras.utils.set_random_seed(seed)
    head = _new_head(classifier.encoder.dimension, len(numbers))

    def read(rows: Sequence[Row]) -> tuple[np.ndarray, np.ndarray]:
        texts = [row["text"] for row in rows]
        vectors = classifier.encoder.encode(texts, on_truncation="ignore")
        return vectors, np.array([numbers[row["label"]] for row in rows])

    fit_layers(head.layers, *read([*training_rows(found, held)]), from_logits=False)
    accuracy = {}
    for measured_set in measured:
        if measured_set.labels_of == found.source.name and measured_set.kind.stands_in_for(LABELS):
            vectors, labels = read(measured_set.rows)
            accuracy[measured_set.name] = float(
                (np.asarray(head(vectors)).argmax(axis=1) == labels).mean()
            )
    _check_finite(head, path, "Do the encoder's vectors hold NaN?")
    record_path = path.with_suffix(".json")
    text = record_text([*numbers], accuracy, where=as_written(record_path))
    with atomic_path(path) as temporary, saving_quietly():
        head.save(temporary)
    with atomic_path(record_path) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return dataclasses.replace(classifier, accuracy=accuracy)


def _new_head(dimension: int, labels: int) -> keras.Sequential:
    classes = keras.layers.Dense(labels, activation="softmax", dtype="float32", name="classes")
    return keras.Sequential([keras.Input((dimension,)), classes])


def _check_finite(head: keras.Sequential, path: Path, remedy: str) -> None:
    """Refuses a head with NaN or infinity: with NaN every text would get the first label."""
    for variable in head.variables:
        if not np.isfinite(keras.ops.convert_to_numpy(variable.value)).all():
            raise ValueError(
                f"{as_written(path)}: expected finite numbers, {variable.path} holds NaN or "
                f"infinity. {remedy}"
            )
