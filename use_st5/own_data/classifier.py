"""The classifier that a file of texts and labels is for, over the encoder that was exported."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import keras
import msgspec
import numpy as np

import use_st5
from use_st5._files import atomic_path
from use_st5._records import read_record
from use_st5._remote_files import as_written, here
from use_st5.own_data.columns import LABELS
from use_st5.own_data.development import DevelopmentSet
from use_st5.own_data.fitted_layers import fit_layers
from use_st5.own_data.run_folder import RUN, absolute
from use_st5.own_data.sources import Row
from use_st5.own_data.survey import Survey, training_rows
from use_st5.training.recipe_run import write_json

if TYPE_CHECKING:
    from use_st5.encoder import SentenceEncoder


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
        folder: That of the encoder whose vectors it reads.
        labels: What its classes are called, in the order of its outputs.
        accuracy: Share of each development set's rows that it names right, by the set's name.

    Example:
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
        if path.suffix != ".keras":
            raise ValueError(f"{as_written(path)}: expected a .keras file. {remedy}")
        record = read_record(path.with_suffix(".json"), _Record, remedy=remedy)
        if encoder is None and path.parent.suffix != RUN:
            raise ValueError(
                f"{as_written(path)}: expected a file in a folder TO{RUN}, beside which the "
                "encoder TO lies. Say where it is: encoder=FOLDER."
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
        """The label of each text, or of one.

        Args:
            texts: As for `SentenceEncoder.encode`.
            **options: As for the same, such as `batch_size` and `on_truncation`.
        """
        places = self.probabilities(texts, **options).argmax(axis=-1)
        return [self.labels[place] for place in places] if places.ndim else self.labels[places]

    def probabilities(
        self, texts: str | bytes | Iterable[str | bytes], **options: Any
    ) -> np.ndarray:
        """Of each text, float32 `[texts, labels]`; of one `[labels]`. Arguments as above."""
        vectors = self.encoder.encode(texts, **options)
        found = np.asarray(self._head({"sentence": np.atleast_2d(vectors)}))
        return found[0] if vectors.ndim == 1 else found

    def line(self) -> str:
        """What is said of it when it was written."""
        where = as_written(self.path)
        right = ", ".join(f"{100 * part:.2f} on {name}" for name, part in self.accuracy.items())
        accuracy = f", accuracy {right}" if right else ""
        return (
            f"classifier: {where}{accuracy}; `use-st5 classify` and use_st5.own_data.Classifier "
            "name classes by it"
        )

    @cached_property
    def _head(self) -> Any:
        """From vectors to probabilities."""
        model = _transfer_model(self.labels, self.folder)
        with here(self.path) as local:
            model.load_weights(local)
        return model.head


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
    numbers = found.label_numbers
    keras.utils.set_random_seed(seed)
    model = _transfer_model([*numbers], encoder)

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
            chosen = np.asarray(model.head({"sentence": vectors})).argmax(axis=1)
            accuracy[each.name] = float((chosen == labels).mean())
    with atomic_path(path) as temporary:
        model.save(temporary)
    write_json(path.with_suffix(".json"), {"labels": [*numbers], "accuracy": accuracy})
    return Classifier(path, encoder, [*numbers], accuracy)


def _transfer_model(labels: Sequence[str], encoder: str) -> Any:
    from use_st5.layers.saved_model_layer import SavedModelLayer
    from use_st5.models.transfer.transfer_model import TransferModel

    return TransferModel(len(labels), sentence=SavedModelLayer(encoder))


class _Record(msgspec.Struct):
    """What stands beside a classifier's file."""

    labels: list[str]
    accuracy: dict[str, float] = {}
