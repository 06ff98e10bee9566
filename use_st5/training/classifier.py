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
from use_st5.engines.classifier import SavedClassifier, read_labels
from use_st5.io.files import atomic_path, write_json
from use_st5.io.remote_files import as_written, exists
from use_st5.training.checkpoints import saving_quietly
from use_st5.training.linear_probe import fit_layers
from use_st5.training.rows import TrainingFile, training_table
from use_st5.training.run_folder import RUN, absolute
from use_st5.training.tasks import LABELS
from use_st5.training.validation import Row, ValidationSet

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
        """
        path = absolute(Path(path))
        if path.suffix != ".keras" or not exists(path):
            raise FileNotFoundError(
                f"{as_written(path)}: expected a .keras file, found none. Name the "
                "classifier.keras of the folder TO.run that `use-st5 train` wrote."
            )
        record = read_labels(path)
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
        return self._head.probabilities(texts, **options)

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
    def _head(self) -> SavedClassifier:
        return SavedClassifier(self.path, self.encoder)


def write_classifiers(
    files: Sequence[TrainingFile],
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
    labelled = [file for file in files if file.task.stands_in_for(LABELS)]
    classifiers = []
    for number, file in enumerate(labelled, start=1):
        name = "classifier" if len(labelled) == 1 else f"classifier_{number}"
        numbers = file.label_numbers
        classifier = Classifier(work / f"{name}.keras", as_written(encoder), [*numbers], {})
        keras.utils.set_random_seed(seed)
        classes = keras.layers.Dense(
            len(numbers), activation="softmax", dtype="float32", name="classes"
        )
        head = keras.Sequential([keras.Input((classifier.encoder.dimension,)), classes])
        examples = _examples(classifier, training_table(file, [*sets, *tests]).to_pylist())
        fit_layers(head.layers, *examples, from_logits=False)
        accuracy = {}
        for held_set in tests or sets:
            if held_set.labels_of == file.name and held_set.task.stands_in_for(LABELS):
                vectors, labels = _examples(classifier, held_set.rows)
                right = np.asarray(head(vectors)).argmax(axis=1) == labels
                accuracy[held_set.name] = float(right.mean())
        with atomic_path(classifier.path) as temporary, saving_quietly():
            head.save(temporary)
        record = {"labels": [*numbers], "accuracy": accuracy}
        write_json(classifier.path.with_suffix(".json"), record)
        classifiers.append(dataclasses.replace(classifier, accuracy=accuracy))
    return classifiers


def _examples(classifier: Classifier, rows: Sequence[Row]) -> tuple[np.ndarray, np.ndarray]:
    """The vectors of rows, and the numbers of their labels."""
    vectors = classifier.encoder.encode([row["text"] for row in rows], on_truncation="ignore")
    return vectors, np.array([classifier.labels.index(row["label"]) for row in rows])
