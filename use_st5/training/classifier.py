"""Classification heads: fitted before a training, and the classifiers that a training makes."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import keras
import numpy as np
import tensorflow as tf

import use_st5
from use_st5.encode.similarity import unit_rows
from use_st5.engines.classifier import SavedClassifier, chosen, read_labels
from use_st5.io.files import as_written, atomic_path, exists, write_json
from use_st5.losses.label_loss import LabelLoss
from use_st5.losses.matryoshka_loss import MatryoshkaLoss
from use_st5.losses.task_loss import TaskLoss
from use_st5.trainable_encoder import TrainableEncoder
from use_st5.training.arguments import FileArguments
from use_st5.training.checkpoints import saving_quietly
from use_st5.training.few_shot import fitted_head, head_weights, members
from use_st5.training.rows import TrainingFile, labels_in, spread, training_table
from use_st5.training.run_folder import RUN, absolute
from use_st5.training.tasks import LABELS
from use_st5.training.validation import Row, ValidationSet, with_prompts

if TYPE_CHECKING:
    from use_st5.encode.encoder import SentenceEncoder

# Rows that a head is fitted to before the training.
_PROBE_ROWS = 2000
# One row in ten is held out: the fit stops after four rounds of a hundred steps without a lower
# loss on these rows. A tenth of few rows says little: a fit to few rows has four rounds.
_FEW, _HELD_OUT = 500, 0.1
_STEPS, _ROUNDS, _ROUNDS_OF_FEW, _PATIENCE = 100, 40, 4, 4
_BATCH, _RATE = 16, 1e-2


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
            each validation set if there are no test sets. Of several labels all must be right.
        multi_label: Whether a text has any number of labels.

    Examples:
        >>> classifier = Classifier.load("tuned.run/classifier.keras")
        >>> classifier.predict(["How far is it?"])
        ['NUM']
    """

    path: Path
    folder: str
    labels: Sequence[str]
    accuracy: Mapping[str, float]
    multi_label: bool = False

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], *, encoder: str | os.PathLike[str] | None = None
    ) -> Classifier:
        """Loads the classifier of a training.

        Args:
            path: The `.keras` file.
            encoder: The folder of its encoder; None: `TO`, next to the folder `TO.run` of the file.
        """
        path = absolute(Path(path))
        if path.suffix != ".keras" or not exists(path):
            raise FileNotFoundError(f"{as_written(path)}: expected the classifier.keras of TO.run.")
        record = read_labels(path)
        if encoder is None and path.parent.suffix != RUN:
            raise ValueError(f"{as_written(path)}: not in a folder TO{RUN}. Give encoder=FOLDER.")
        folder = as_written(encoder or path.parent.with_suffix(""))
        return cls(path, folder, record.labels, record.accuracy, record.multi_label)

    @cached_property
    def encoder(self) -> SentenceEncoder:
        """The encoder, loaded."""
        return use_st5.load(self.folder)

    def predict(self, texts: str | bytes | Iterable[str | bytes], **options: Any) -> Any:
        """The labels of texts, or the label of a single text.

        A text has one label, or a list of labels if the training texts had such lists: those with
        a probability above 0.5.

        Args:
            texts: As for `SentenceEncoder.encode`.
            **options: Further arguments of `encode`, such as `batch_size` and `on_truncation`.
        """
        rows = self.probabilities(texts, **options)
        options = {"several": self.multi_label}
        if rows.ndim == 1:
            return chosen(rows, self.labels, **options)
        return [chosen(row, self.labels, **options) for row in rows]

    def probabilities(
        self, texts: str | bytes | Iterable[str | bytes], **options: Any
    ) -> np.ndarray:
        """The probabilities of the labels, float32 `[texts, labels]`; `[labels]` for a single text.

        The arguments are those of `predict`.
        """
        return self._head.probabilities(texts, **options)

    @property
    def head(self) -> Any:
        """The head as a fitted object of scikit-learn, from the encoder's vectors to labels.

        It is a `LogisticRegression`, or for lists of labels a `OneVsRestClassifier` of them.
        """
        return fitted_head(
            self._head.kernel, self._head.bias, self.labels, several=self.multi_label
        )

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
    arguments: FileArguments,
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
        labels, several = [*file.label_numbers], file.is_multi_label
        classifier = Classifier(work / f"{name}.keras", as_written(encoder), labels, {}, several)
        keras.utils.set_random_seed(arguments.seed)
        activation = "sigmoid" if several else "softmax"
        classes = keras.layers.Dense(
            len(labels), activation=activation, dtype="float32", name="classes"
        )
        head = keras.Sequential([keras.Input((classifier.encoder.dimension,)), classes])
        vectors, own = _examples(classifier, training_table(file, [*sets, *tests]).to_pylist())
        if arguments.few_shot:
            known, weight = members(own, labels), arguments.class_weight
            classes.set_weights(head_weights(vectors, known, several=several, class_weight=weight))
        else:
            numbers = np.array([file.label_numbers[label] for label in own])
            fit_layers(head.layers, vectors, numbers, from_logits=False)
        accuracy = {}
        for held_set in tests or sets:
            if held_set.labels_of == file.name and held_set.task.stands_in_for(LABELS):
                vectors, own = _examples(classifier, held_set.rows)
                rows = np.asarray(head(vectors))
                predicted = [chosen(row, labels, several=several) for row in rows]
                expected = [sorted(labels_in(each) or []) if several else each for each in own]
                right = [pair[0] == pair[1] for pair in zip(predicted, expected, strict=True)]
                accuracy[held_set.name] = float(np.mean(right))
        with atomic_path(classifier.path) as temporary, saving_quietly():
            head.save(temporary)
        record = {"labels": labels, "accuracy": accuracy, "multi_label": several}
        write_json(classifier.path.with_suffix(".json"), record)
        classifiers.append(dataclasses.replace(classifier, accuracy=accuracy))
    return classifiers


def _examples(classifier: Classifier, rows: Sequence[Row]) -> tuple[np.ndarray, list[str]]:
    """The vectors of rows, and their labels."""
    vectors = classifier.encoder.encode([row["text"] for row in rows], on_truncation="ignore")
    return vectors, [row["label"] for row in rows]


def probe_weights(
    make_loss: Callable[[], TaskLoss],
    file: TrainingFile,
    sets: Sequence[ValidationSet],
    encoder: TrainableEncoder,
    seed: int,
) -> list[np.ndarray]:
    """The weights of a loss whose heads are fitted to the vectors of the unchanged encoder.

    Heads with random weights make the encoder forget what it knows of other tasks. This is "linear
    probing then fine-tuning" (Kumar et al. 2022, arXiv 2202.10054, section 3.4);
    docs/own_data_results.md compares both. Only losses with `has_heads` have such weights; `sets`
    are rows that are not trained on.
    """
    rows = [
        with_prompts(row, file.prompts)
        for row in spread(training_table(file, sets), file.kept, _PROBE_ROWS)
    ]
    numbers, task = file.label_numbers, file.task
    labels = np.array([numbers[row[task.label or ""]] for row in rows])
    vectors = [encoder.encode([row[key] for row in rows]) for key in task.texts]
    first_loss = make_loss()
    keras.utils.set_random_seed(seed)
    loss = make_loss()
    if loss is first_loss:  # The user made it: it is built later, in the strategy's scope.
        loss = type(first_loss).from_config(first_loss.get_config())
    loss.build((None, encoder.dimension))
    for head, head_vectors in _heads(loss, vectors):
        layers = [*head.hidden_layers, head.output_layer]
        fit_layers(layers, np.asarray(head.head_input(head_vectors)), labels)
    weights: list[np.ndarray] = loss.get_weights()
    return weights


def has_heads(loss: TaskLoss) -> bool:
    """Whether a loss has heads that can be fitted."""
    head_loss = loss.losses_of_heads[0] if isinstance(loss, MatryoshkaLoss) else loss
    return isinstance(head_loss, LabelLoss)


def fit_layers(
    layers: Sequence[keras.layers.Layer],
    features: np.ndarray,
    labels: np.ndarray,
    *,
    from_logits: bool = True,
) -> None:
    """Fits layers with early stopping on held-out rows, or to few rows for 400 steps."""
    order = np.random.default_rng(0).permutation(len(labels))
    split = round(_HELD_OUT * len(labels)) if len(labels) >= _FEW else 0
    examples = tf.data.Dataset.from_tensor_slices((features[order[split:]], labels[order[split:]]))
    outputs: Any = (inputs := keras.Input(features.shape[1:]))
    for layer in layers:
        outputs = layer(outputs)
    classifier = keras.Model(inputs, outputs)
    classifier.compile(
        keras.optimizers.Adam(_RATE),
        keras.losses.SparseCategoricalCrossentropy(from_logits=from_logits),
        # The steps are so small that calls would take most of the time, and compilation the rest.
        steps_per_execution=_STEPS,
        jit_compile=False,
    )
    early_stopping = keras.callbacks.EarlyStopping(patience=_PATIENCE, restore_best_weights=True)
    classifier.fit(
        examples.shuffle(len(labels), seed=0).repeat().batch(_BATCH),
        steps_per_epoch=_STEPS,
        epochs=_ROUNDS if split else _ROUNDS_OF_FEW,
        validation_data=(features[order[:split]], labels[order[:split]]) if split else None,
        callbacks=[early_stopping] if split else [],
        shuffle=False,  # The data is shuffled already.
        verbose=0,
    )


def _heads(
    loss: TaskLoss, vectors: Sequence[np.ndarray]
) -> Iterator[tuple[LabelLoss, list[np.ndarray]]]:
    """Each classifier of a loss, with the vectors that it will read."""
    if isinstance(loss, LabelLoss):
        yield loss, [*vectors]
    elif isinstance(loss, MatryoshkaLoss):
        for dimension, head in zip(loss.dimensions, loss.losses_of_heads, strict=True):
            yield from _heads(head, [unit_rows(each[:, :dimension]) for each in vectors])
