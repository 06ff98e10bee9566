"""One step, computed by hand: a linear encoder and a squared distance."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from use_st5.losses.task_loss import Feature, TaskLoss
from use_st5.training.array_data import ArrayData
from use_st5.training.task import Task
from use_st5.training.train_step import TrainStep

IDS = np.array([[1], [1], [2], [1]], np.int32)
TARGETS = np.array([[1.0], [2.0], [4.0], [3.0]], np.float32)


class Table(keras.Model):
    """A number for each id, `[batch, 1] → [batch, 1]`, and a weight that nothing depends on."""

    dimension = 1

    def __init__(self) -> None:
        super().__init__()
        self.table = keras.layers.Embedding(4, 1, embeddings_initializer="zeros")
        self.table.build((None, None))
        self.unused = self.add_weight(shape=(), initializer="ones", name="unused")
        self.built = True

    def call(self, ids: Any, training: bool = False) -> Any:
        del training
        return self.table(ids)[:, 0]


class Distance(TaskLoss):
    """`mean (x − target)² / 2`."""

    features = (Feature("ids", "ids"), Feature("target", "vector", size=1))
    metric_names = ("largest",)

    def build(self, embedding_shape: tuple[int | None, int]) -> None:
        """Nothing to build."""

    def call(self, encoder: Any, batch: dict, training: bool = False, gather: Any = None) -> Any:
        del gather
        errors = encoder(batch["ids"], training=training) - batch["target"]
        return ops.mean(ops.square(errors)) / 2.0, {"largest": ops.max(ops.abs(errors))}


def stepped(
    optimizer: keras.optimizers.Optimizer, *, steps: int = 1, gradient_accumulation_steps: int = 1
) -> tuple[Table, dict[str, float]]:
    """The encoder after steps over the same batch, and the metrics of the steps."""
    encoder = Table()
    task = Task("distance", Distance(), ArrayData({"ids": IDS, "target": TARGETS}), batch_size=4)
    task.loss.build((None, 1))
    optimizer.build(encoder.trainable_variables)
    step = TrainStep(
        encoder,
        task,
        optimizer,
        strategy=tf.distribute.get_strategy(),
        gradient_accumulation_steps=gradient_accumulation_steps,
        gradient_cache=1,
        jit_compile=False,
    )
    batches = tf.data.Dataset.from_tensors({"ids": IDS, "target": TARGETS, "more": IDS}).repeat()
    return encoder, step(iter(batches), steps)


@pytest.mark.parametrize("gradient_accumulation_steps", [1, 2])
def test_an_update_is_the_rate_times_the_mean_gradient(gradient_accumulation_steps: int) -> None:
    encoder, values = stepped(
        keras.optimizers.SGD(0.5), gradient_accumulation_steps=gradient_accumulation_steps
    )
    # d/dx of the mean of (x − t)² / 2 at 0: −(1 + 2 + 3) / 4 for id 1, −4 / 4 for id 2.
    assert encoder.table.embeddings.numpy()[:, 0] == pytest.approx([0.0, 0.75, 0.5, 0.0])
    assert values["loss"] == pytest.approx((1 + 4 + 16 + 9) / 8)
    # The mean of the micro-batches' largest errors, 2 and 4, or the batch's largest error.
    assert values["largest"] == pytest.approx(4.0 if gradient_accumulation_steps == 1 else 3.0)


def test_an_id_that_comes_three_times_is_clipped_as_one_row() -> None:
    encoder, _ = stepped(keras.optimizers.SGD(1.0, global_clipnorm=0.1))
    gradient = np.array([1.5, 1.0])  # clipped by its norm, not by that of its four summands
    expected = 0.1 * gradient / np.linalg.norm(gradient)
    assert encoder.table.embeddings.numpy()[1:3, 0] == pytest.approx(expected)


def test_what_the_loss_does_not_depend_on_stays_and_does_not_decay() -> None:
    encoder, _ = stepped(keras.optimizers.AdamW(0.1, weight_decay=0.5), steps=3)
    assert float(encoder.unused) == 1.0


def test_values_are_means_over_the_steps_of_a_call() -> None:
    # At the rate of 1, id 2 goes 0, 1, 1.75; id 1 goes 0, 1.5, 1.875.
    _, values = stepped(keras.optimizers.SGD(1.0), steps=2)
    errors = [np.array([x1 - 1, x1 - 2, x2 - 4, x1 - 3]) for x1, x2 in ((0.0, 0.0), (1.5, 1.0))]
    assert values["loss"] == pytest.approx(np.mean([np.mean(e**2) / 2 for e in errors]))
    assert values["largest"] == pytest.approx((4 + 3) / 2)
