"""A classifying loss that begins as a classifier of the vectors which the encoder gives already."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

import keras
import numpy as np

from use_st5._vectors import unit_rows
from use_st5.losses.label_loss import LabelLoss
from use_st5.losses.matryoshka_loss import MatryoshkaLoss
from use_st5.losses.task_loss import TaskLoss
from use_st5.trainable_encoder import TrainableEncoder
from use_st5.training.fitted_layers import fit_layers
from use_st5.training.held_out import spread, training_table
from use_st5.training.survey import Survey
from use_st5.training.validation import DevelopmentSet

# Rows that the layers are fitted to.
FITTED_ROWS = 2000


class FittedLoss:
    """Makes the loss of a task of labels or of inference, its layers fitted before the first step.

    Layers that begin at random teach the encoder to turn its vectors toward their accidents, and
    what it knew of other tasks is lost: "linear probing then fine-tuning" of Kumar et al. 2022
    (arXiv 2202.10054, section 3.4). docs/own_data_results.md has both.

    Args:
        make: Makes the loss, of labels, of inference, or a Matryoshka loss around one.
        found: The source that it learns.
        sets: The rows that do not train.
        encoder: What will learn; read as it is when `fit` is called.
        seed: Of the layers' initial weights.
    """

    def __init__(
        self,
        make: Callable[[], TaskLoss],
        found: Survey,
        sets: Collection[DevelopmentSet],
        encoder: TrainableEncoder,
        seed: int,
    ) -> None:
        self.make, self._found, self._sets, self._seed = make, found, sets, seed
        self._encoder = encoder
        self._weights: list[np.ndarray] | None = None

    def fit(self) -> None:
        """Fits the layers to the encoder's vectors as they are."""
        rows = spread(training_table(self._found, self._sets), self._found.kept, FITTED_ROWS)
        numbers = self._found.label_numbers
        labels = np.array([numbers[row["label"]] for row in rows])
        keys = self._found.source.kind.texts
        vectors = [self._encoder.encode([row[key] for row in rows]) for key in keys]
        keras.utils.set_random_seed(self._seed)
        loss = self._built()
        for head, seen in _heads(loss, vectors):
            layers = [*head.hidden_layers, head.output_layer]
            fit_layers(layers, np.asarray(head.head_input(seen)), labels)
        self._weights = loss.get_weights()

    def __call__(self) -> TaskLoss:
        """The loss; as it is drawn, where nothing was fitted yet."""
        if self._weights is None:
            return self.make()
        loss = self._built()
        loss.set_weights(self._weights)
        return loss

    def _built(self) -> TaskLoss:
        loss = self.make()
        loss.build((None, self._encoder.dimension))
        return loss


def _heads(
    loss: TaskLoss, vectors: Sequence[np.ndarray]
) -> Iterator[tuple[LabelLoss, list[np.ndarray]]]:
    """Each classifier of a loss, with the vectors that it will see."""
    if isinstance(loss, LabelLoss):
        yield loss, [*vectors]
    elif isinstance(loss, MatryoshkaLoss):
        for dimension, head in zip(loss.dimensions, loss.losses_of_heads, strict=True):
            yield from _heads(head, [unit_rows(each[:, :dimension]) for each in vectors])
