"""The compiled step of one task: several optimizer steps per call from the host."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import keras
import tensorflow as tf

from use_st5.training.optimizers import OneOperation, clipped
from use_st5.training.piecewise_encoder import PiecewiseEncoder
from use_st5.training.strategies import ReplicaGather
from use_st5.training.task import Task, micro_batches
from use_st5.training.width_branches import WidthBranches

Batch = dict[str, tf.Tensor]
Found = tuple[tf.Tensor, dict[str, tf.Tensor], list[tf.Tensor | None]]


class TrainStep:
    """Gradient, reduction over replicas and update for one task, as one `tf.function`.

    Args:
        encoder: The model that all tasks train.
        task: The task; its head is built.
        optimizer: Built on the variables of the encoder and of all heads.
        strategy: The strategy that runs the step.
        gradient_accumulation_steps: Micro-batches whose mean gradient makes one update.
        gradient_cache: Pieces in which the texts of a micro-batch are encoded; more than one
            needs a `VectorLoss`.
        jit_compile: Whether XLA compiles gradient and update (one replica only).
        static_shapes: Whether the step is traced for each width of the task's batches with all
            sizes known, as a TPU needs. Otherwise one trace serves all widths.
    """

    def __init__(
        self,
        encoder: keras.Model,
        task: Task,
        optimizer: keras.optimizers.Optimizer,
        *,
        strategy: tf.distribute.Strategy,
        gradient_accumulation_steps: int,
        gradient_cache: int,
        jit_compile: bool,
        static_shapes: bool = False,
    ) -> None:
        self.encoder = encoder
        self.loss = task.loss
        self.optimizer = optimizer
        self.strategy = strategy
        self.gradient_accumulation_steps = gradient_accumulation_steps
        self.names = ("loss", *task.loss.metric_names)
        self._feature_names = [feature.name for feature in task.loss.features]
        self._variables = [*encoder.trainable_variables, *task.loss.trainable_variables]
        self._widths = (
            WidthBranches(task, self._feature_names, strategy=strategy) if static_shapes else None
        )
        self._gather = ReplicaGather()
        self._pieces = PiecewiseEncoder(encoder, gradient_cache) if gradient_cache > 1 else None
        # A dense gradient of a large table is written and read three more times, but XLA, replicas
        # and Keras's own optimizers need a dense one.
        is_single = strategy.num_replicas_in_sync == gradient_accumulation_steps == 1
        self._takes_sparse = (
            is_single and not (jit_compile or static_shapes) and isinstance(optimizer, OneOperation)
        )
        # Without XLA no inner function: the threads of the replicas could not synchronise in it.
        self._replica_step = (
            tf.function(self._step, jit_compile=True, autograph=False)
            if jit_compile
            else self._step
        )
        # TensorFlow counts the traces of a method for all objects together, and would warn if there
        # are many tasks; the traces of a partial are counted separately.
        self._steps = tf.function(functools.partial(self._run), reduce_retracing=True)

    def __call__(self, batches: Iterator[Batch], steps: int) -> dict[str, float]:
        """Makes `steps` updates, one batch each; returns the means of loss and metrics."""
        means = self._steps(batches, tf.constant(steps)).numpy()
        return dict(zip(self.names, map(float, means), strict=True))

    def _run(self, batches: Iterator[Batch], steps: tf.Tensor) -> tf.Tensor:
        total = tf.zeros([len(self.names)])
        for _ in tf.range(steps):
            batch = next(batches)
            if self._widths is None:
                total += self._on_replicas(batch)
            else:
                total += self._widths(self._on_replicas, batch)
        return total / tf.cast(steps, tf.float32)

    # Keras's `fit` does this too. AutoGraph takes a quarter of a trace's time, and its `super()`
    # keeps the frames of the trace, and so the batches, until garbage is collected.
    @tf.autograph.experimental.do_not_convert
    def _on_replicas(self, batch: Batch) -> tf.Tensor:
        """Makes an update on all replicas; returns the means of their values, float32 `[names]`."""
        values = self.strategy.run(self._replica_step, args=(batch,))
        return self.strategy.reduce(tf.distribute.ReduceOp.MEAN, values, axis=None)

    def _step(self, batch: Batch) -> tf.Tensor:
        """Makes one update on one replica; returns the loss and the metrics, float32 `[names]`."""
        batch = {name: batch[name] for name in self._feature_names}
        parts = micro_batches(batch, self.gradient_accumulation_steps)
        values, gradients = self._gradients(parts[0])
        for part in parts[1:]:
            part_values, part_gradients = self._gradients(part)
            values += part_values
            gradients = [_add(a, b) for a, b in zip(gradients, part_gradients, strict=True)]
        self._apply(gradients)
        return values / self.gradient_accumulation_steps

    def _gradients(self, batch: Batch) -> tuple[tf.Tensor, list[tf.Tensor | None]]:
        """Loss and metrics of one micro-batch, and its share of the gradient of the whole batch."""
        loss, metrics, gradients = (
            self._direct_gradients(batch)
            if self._pieces is None
            else self._cached_gradients(batch, self._pieces)
        )
        convert = _rows_once if self._takes_sparse else tf.convert_to_tensor
        gradients = [None if g is None else convert(g) for g in gradients]
        return tf.stack([loss, *(metrics[name] for name in self.names[1:])]), gradients

    def _direct_gradients(self, batch: Batch) -> Found:
        with tf.GradientTape() as tape:
            loss, metrics = self.loss(self.encoder, batch, training=True, gather=self._gather)
            share = self._share(loss)
        return loss, metrics, tape.gradient(share, [v.value for v in self._variables])

    def _cached_gradients(self, batch: Batch, encode: PiecewiseEncoder) -> Found:
        """Loss, metrics and gradients through the vectors, which are encoded in pieces."""
        texts = self.loss.texts(batch)
        vectors = encode(texts)
        head = [variable.value for variable in self.loss.trainable_variables]
        with tf.GradientTape() as tape:
            tape.watch(vectors)
            loss, metrics = self.loss.from_vectors(
                vectors, batch, training=True, gather=self._gather
            )
            share = self._share(loss)
        of_vectors, of_head = tape.gradient(share, [vectors, head])
        # A loss may not depend on all of its texts.
        of_vectors = [
            tf.zeros_like(v) if g is None else g for v, g in zip(vectors, of_vectors, strict=True)
        ]
        return loss, metrics, [*encode.gradients(texts, of_vectors), *of_head]

    def _share(self, loss: tf.Tensor) -> tf.Tensor:
        """The part of the minimised loss that comes from a micro-batch on this replica."""
        return loss / (self.gradient_accumulation_steps * self.strategy.num_replicas_in_sync)

    def _apply(self, gradients: list[tf.Tensor | None]) -> None:
        replicas = self.strategy.num_replicas_in_sync
        pairs = [
            (gradient, variable)
            for gradient, variable in zip(gradients, self._variables, strict=True)
            if gradient is not None
        ]
        gradients, variables = (list(column) for column in zip(*pairs, strict=True))
        if replicas > 1 and _clips(self.optimizer):
            # Keras clips before it sums over the replicas, which does not clip the whole gradient.
            # Clip the sum; each replica's share of it is then too small to be clipped again.
            context = tf.distribute.get_replica_context()
            sums = context.all_reduce(tf.distribute.ReduceOp.SUM, gradients)
            gradients = [gradient / replicas for gradient in clipped(self.optimizer, sums)]
        self.optimizer.apply(gradients, variables)


def _rows_once(gradient: tf.Tensor | tf.IndexedSlices) -> tf.Tensor | tf.IndexedSlices:
    """Sums the repeated rows of a sparse gradient, which has a row for each occurrence.

    With repeated rows, the norm or the square of the list is not that of the gradient.
    """
    if not isinstance(gradient, tf.IndexedSlices):
        return gradient
    rows, places = tf.unique(gradient.indices)
    sums = tf.math.unsorted_segment_sum(gradient.values, places, tf.size(rows))
    return tf.IndexedSlices(sums, rows, gradient.dense_shape)


def _add(a: tf.Tensor | None, b: tf.Tensor | None) -> tf.Tensor | None:
    """The sum of two gradients; None if the loss does not depend on the variable."""
    return None if a is None or b is None else a + b


def _clips(optimizer: keras.optimizers.Optimizer) -> bool:
    return any((optimizer.clipnorm, optimizer.global_clipnorm, optimizer.clipvalue))
