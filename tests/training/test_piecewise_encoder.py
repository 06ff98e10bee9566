from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.training import toy
from use_st5.losses.classification_loss import ClassificationLoss
from use_st5.losses.contrastive_loss import ContrastiveLoss
from use_st5.losses.task_loss import LOCAL, TaskLoss, encode_together
from use_st5.training.array_data import ArrayData
from use_st5.training.piecewise_encoder import PiecewiseEncoder
from use_st5.training.task import Task
from use_st5.training.tensorflow_loop import TensorFlowLoop

PIECES = 4


class NoisyEncoder(toy.ToyEncoder):
    """A toy with a dropout of one half, and a weight that its vectors do not depend on."""

    def __init__(self) -> None:
        super().__init__(dropout=0.5)
        self.unused = self.add_weight(shape=(3,))


def texts() -> list[tf.Tensor]:
    """Three id arrays `[16, …]` of two lengths."""
    columns = toy.arrays(16)
    first, *rest = (columns[name] for name in ("sentence", "previous", "next"))
    return [tf.constant(np.pad(first, [(0, 0), (0, 2)])), *map(tf.constant, rest)]


def seeds(encoder: keras.Model) -> list[np.ndarray]:
    return [v.numpy() for v in encoder.variables if "seed" in v.path]


def loss_of(vectors: list[Any], ids: list[Any]) -> Any:
    batch = dict(zip(("anchor", "positive", "negative"), ids, strict=True))
    loss = ContrastiveLoss(temperature=0.1, hard_negatives=True, bidirectional=True)
    return loss.from_vectors(vectors, batch, training=True, gather=LOCAL)[0]


def direct(encoder: keras.Model, ids: list[Any]) -> tuple[Any, list[Any]]:
    """One tape over everything; pieces are encoded in turn, since dropout draws for each."""
    with tf.GradientTape() as tape:
        parts = zip(*(tf.split(each, PIECES) for each in ids), strict=True)
        encoded = [encode_together(encoder, list(part), training=True) for part in parts]
        loss = loss_of([tf.concat(each, 0) for each in zip(*encoded, strict=True)], ids)
    return loss, tape.gradient(loss, [v.value for v in encoder.trainable_variables])


def cached(encoder: keras.Model, ids: list[Any]) -> tuple[Any, list[Any]]:
    pieces = PiecewiseEncoder(encoder, PIECES)
    vectors = pieces(ids)
    with tf.GradientTape() as tape:
        tape.watch(vectors)
        loss = loss_of(vectors, ids)
    return loss, pieces.gradients(ids, tape.gradient(loss, vectors))


@pytest.mark.parametrize("jit_compile", [False, True])
def test_gradients_with_dropout_are_those_of_one_tape(jit_compile: bool) -> None:
    results, states = [], []
    for find in (direct, cached):
        keras.utils.set_random_seed(4)
        encoder = NoisyEncoder()
        compiled = tf.function(lambda ids, f=find, e=encoder: f(e, ids), jit_compile=jit_compile)
        compiled(texts())
        results.append(compiled(texts()))  # the second step draws other masks than the first
        states.append(seeds(encoder))
    (loss, expected), (same_loss, found) = results
    assert float(same_loss) == pytest.approx(float(loss), rel=1e-6)
    assert [g is None for g in found] == [g is None for g in expected]
    assert sum(g is None for g in found) == 1
    for a, b in zip(found, expected, strict=True):
        if a is not None:
            a, b = tf.convert_to_tensor(a).numpy(), tf.convert_to_tensor(b).numpy()
            assert np.abs(a - b).max() <= 1e-5 * np.abs(b).max()
    assert states[0][0][1] == 2 * PIECES
    np.testing.assert_array_equal(*states)


def trained(make: Callable[[], TaskLoss], **options: Any) -> list[np.ndarray]:
    """All weights after three steps of SGD, whose steps show the size of the gradients."""
    keras.utils.set_random_seed(5)
    loss = make()
    columns = toy.arrays()
    columns |= dict(zip(("anchor", "positive", "negative"), columns.values(), strict=False))
    optimizer = keras.optimizers.SGD(0.5, global_clipnorm=0.1)
    task = Task("only", loss, ArrayData(columns), batch_size=32)
    fixed = {"steps_per_execution": 1, "jit_compile": False, "progress": False}
    trainer = TensorFlowLoop(toy.ToyEncoder(), [task], optimizer, **fixed, **options)
    trainer.run(3)
    return [v.numpy() for v in (*trainer.encoder.weights, *loss.weights)]


@pytest.mark.parametrize(
    ("name", "gradient_accumulation_steps", "pieces"),
    [
        *((name, 1, 2) for name in toy.losses()),
        *(("contrastive", 1, 4), ("contrastive", 2, 2), ("premise", 1, 2)),
    ],
)
def test_the_trainer_makes_the_same_steps(
    name: str, gradient_accumulation_steps: int, pieces: int
) -> None:
    others = {
        "contrastive": lambda: ContrastiveLoss(temperature=0.1, hard_negatives=True),
        "premise": lambda: ClassificationLoss(parts=("u",), hidden_dims=()),
    }
    make = others.get(name, lambda: toy.losses()[name])
    weights = [
        trained(make, gradient_accumulation_steps=gradient_accumulation_steps, gradient_cache=n)
        for n in (1, pieces)
    ]
    for a, b in zip(*weights, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


class Whole(TaskLoss):
    """A loss that needs the encoder itself."""


def test_a_loss_that_needs_more_than_vectors_is_refused() -> None:
    with pytest.raises(ValueError, match=r"task 'only' to be a VectorLoss.*Received: Whole"):
        trained(Whole, gradient_cache=2)


@pytest.mark.parametrize("pieces", [0, 3])
def test_pieces_must_share_the_batch(pieces: int) -> None:
    with pytest.raises(ValueError, match=rf"2 micro_batches x {pieces} pieces. Received: 32"):
        trained(ContrastiveLoss, gradient_accumulation_steps=2, gradient_cache=pieces)
