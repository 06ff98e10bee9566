"""The step under TensorFlow: by hand, in pieces, and with known sizes as a TPU gets it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from tests.training import toy
from use_st5.data.arrays import ArrayData
from use_st5.losses.contrastive_loss import ContrastiveLoss
from use_st5.losses.gist_loss import GISTEmbedLoss
from use_st5.losses.task_loss import LOCAL, Feature, TaskLoss, encode_together
from use_st5.training import tensorflow_step
from use_st5.training.arguments import TrainingArguments
from use_st5.training.task import Task
from use_st5.training.tensorflow_step import PiecewiseEncoder, TensorFlowLoop, TrainStep

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
        TrainingArguments(gradient_accumulation_steps=gradient_accumulation_steps),
        strategy=tf.distribute.get_strategy(),
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
    columns |= dict.fromkeys(("guide_anchor", "guide_positive"), columns["teacher"])
    optimizer = keras.optimizers.SGD(0.5, global_clipnorm=0.1)
    task = Task("only", loss, ArrayData(columns), batch_size=32)
    trainer = toy.loop(TensorFlowLoop, toy.ToyEncoder(), [task], optimizer, **options)
    trainer.run(3)
    return [v.numpy() for v in (*trainer.encoder.weights, *loss.weights)]


@pytest.mark.parametrize(
    ("name", "parts", "pieces"), [("text", 1, 2), ("pairs", 2, 2), ("guided", 1, 4)]
)
def test_the_trainer_makes_the_same_steps(name: str, parts: int, pieces: int) -> None:
    pairs = {
        "pairs": partial(ContrastiveLoss, temperature=0.1, hard_negatives=True),
        # What others call CachedGISTEmbed.
        "guided": partial(GISTEmbedLoss, guide_dim=toy.TEACHER, temperature=0.1),
    }
    make = pairs.get(name, lambda: toy.losses()[name])
    weights = [
        trained(make, gradient_accumulation_steps=parts, micro_batch_size=32 // parts // n)
        for n in (1, pieces)
    ]
    for a, b in zip(*weights, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_a_loss_that_needs_more_than_vectors_is_refused() -> None:
    class Whole(TaskLoss):
        """A loss that needs the encoder itself."""

    with pytest.raises(ValueError, match="only: micro_batch_size needs a VectorLoss, not a Whole"):
        trained(Whole, micro_batch_size=16)


def trained_on_a_tpu(*, tpu: bool, buckets: tuple[int, ...]) -> tuple[TensorFlowLoop, list[float]]:
    """Trains ten steps: one call from the host makes seven, the next one three."""
    keras.utils.set_random_seed(1)
    columns = {name: toy.arrays()[name] for name in ("premise", "hypothesis", "label")}
    task = Task("nli", toy.losses()["nli"], ArrayData(columns, buckets=buckets), batch_size=4)
    options = {"jit_compile": None if tpu else False, "steps_per_execution": 7}
    sgd = keras.optimizers.SGD(0.1)
    made = toy.loop(TensorFlowLoop, toy.ToyEncoder(), [task], sgd, **options)
    return made, [record["loss"] for record in made.run(10).records]


def test_every_width_has_a_trace_of_known_sizes_on_a_tpu(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, tf.TensorSpec]] = []
    step = TrainStep._step

    def noting(self: TrainStep, batch: dict[str, tf.Tensor]) -> tf.Tensor:
        seen.append({name: tf.TensorSpec.from_tensor(value) for name, value in batch.items()})
        return step(self, batch)

    monkeypatch.setattr(TrainStep, "_step", noting)
    _, expected = trained_on_a_tpu(tpu=False, buckets=(2, 4, 5))
    assert [spec["premise"].shape.as_list() for spec in seen] == [[4, None]]
    seen.clear()
    monkeypatch.setattr(tensorflow_step, "compiles_everything", lambda strategy: True)
    made, losses = trained_on_a_tpu(tpu=True, buckets=(2, 4, 5))
    assert losses == pytest.approx(expected, rel=1e-5)
    assert not made.jit_compile
    # The last call makes fewer steps with the same trace.
    assert made._train_steps["nli"]._steps.experimental_get_tracing_count() == 1
    assert [spec["premise"].shape.as_list() for spec in seen] == [[4, 2], [4, 4], [4, 5]]
    for spec in seen:
        assert all(each.shape.is_fully_defined() for each in spec.values())
        assert {each.dtype for each in spec.values()} == {tf.int32}
