"""The training loop under TensorFlow and any `tf.distribute` strategy, and its compiled step."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from use_st5.data.arrays import ArrayData
from use_st5.io.files import as_written
from use_st5.losses.task_loss import encode_together
from use_st5.models.family import Family, known_family
from use_st5.training.arguments import TrainingArguments
from use_st5.training.batch_files import BatchFiles, endless
from use_st5.training.history import TensorBoardWriter
from use_st5.training.loop import Metrics, Preempted, TrainingLoop
from use_st5.training.optimizers import OneOperation, clipped
from use_st5.training.strategies import (
    ReplicaGather,
    any_worker,
    compiles_everything,
    has_remote_workers,
    is_chief,
    wait_for_workers,
)
from use_st5.training.task import Task, micro_batches, shuffling_seed, steps_of_tasks, task_in_turn

Batch = dict[str, tf.Tensor]
Found = tuple[tf.Tensor, dict[str, tf.Tensor], list[tf.Tensor | None]]
# TensorFlow's errors if it cannot end a step because of another process.
_LOST = (
    tf.errors.UnavailableError,
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.DeadlineExceededError,
)

# Operations whose results are no memory of their own, or do not grow with the texts.
_NO_COPIES = ("ReadVariableOp", "Const", "Identity", "Reshape", "ExpandDims", "Squeeze")


class TensorFlowLoop(TrainingLoop):
    """Trains one encoder on several tasks under TensorFlow.

    With `args.jit_compile` XLA compiles the whole step. None: on a GPU, if the encoder's family
    gains from it, and only with one replica: XLA cannot compile the collectives of several on CPUs
    and GPUs (`merge_call` needs Python between the replicas), and a TPU compiles everything anyway.
    TensorBoard's files are written to `folder/logs`.

    The arguments are those of `TrainingLoop`, with encoder and optimizer made in the strategy's
    scope, and:

    Args:
        strategy: The strategy to train with (see `strategy_by_name`); None: the one in scope.
        batch_files: A folder that all workers see, on any file system of `tf.io.gfile`; the batches
            of the whole run are written there before the first step (see `BatchFiles`), and read
            from there. None: `folder/batches` if other processes compute the steps, as on a TPU
            pod, and otherwise no files.
    """

    def __init__(
        self,
        encoder: keras.Model,
        tasks: Sequence[Task],
        optimizer: keras.optimizers.Optimizer,
        args: TrainingArguments,
        *,
        strategy: tf.distribute.Strategy | None = None,
        batch_files: str | os.PathLike[str] | None = None,
        **options: Any,
    ) -> None:
        self.strategy = strategy or tf.distribute.get_strategy()
        self._known_sizes = compiles_everything(self.strategy)
        family = known_family(encoder) or Family
        alone = self.strategy.num_replicas_in_sync == 1 and not self._known_sizes
        # On a CPU a Transformer takes minutes to compile, and the step of a USE-DAN is slower.
        usual = family.compiles and alone and bool(tf.config.list_physical_devices("GPU"))
        self.jit_compile = usual if args.jit_compile is None else args.jit_compile
        if self.jit_compile and not alone:
            raise ValueError("jit_compile: XLA compiles one replica only, and a TPU without it.")
        folder = options.get("folder")
        if batch_files is None and folder is not None and has_remote_workers(self.strategy):
            batch_files = f"{as_written(folder)}/batches"
        self._files = None if batch_files is None else as_written(batch_files)
        super().__init__(encoder, tasks, optimizer, args, **options)
        self._train_steps = {
            name: TrainStep(
                self.encoder,
                task,
                optimizer,
                self.args,
                strategy=self.strategy,
                jit_compile=self.jit_compile,
                static_shapes=self._known_sizes,
            )
            for name, task in self.tasks.items()
        }
        self._stream = TaskStream(
            self.tasks,
            strategy=self.strategy,
            seed=args.seed,
            micro_batches=args.gradient_accumulation_steps,
            files=self._files,
        )

    def _learning_rate(self) -> float:
        # Through a tensor: Keras cannot read a variable of several replicas as a number.
        return float(tf.convert_to_tensor(self.optimizer.learning_rate))

    @property
    def _is_chief(self) -> bool:
        return is_chief(self.strategy)

    def _scope(self) -> contextlib.AbstractContextManager:
        return self.strategy.scope()

    def _writer(self) -> TensorBoardWriter | None:
        if self.folder is None or not self._is_chief:
            return None
        return TensorBoardWriter(f"{as_written(self.folder)}/logs")

    def _loop(self, steps: int, callbacks: keras.callbacks.CallbackList) -> None:
        if self._files is not None:
            done_steps = self.history.task_steps
            new_steps = steps_of_tasks(
                self.tasks,
                range(self.history.step, steps),
                order=self.args.task_order,
                seed=self.args.seed,
                steps_per_turn=self._turn,
            )
            ends = {name: done_steps[name] + new_steps[name] for name in self.tasks}
            self._stream.prepare(done_steps, ends, writes=self._is_chief)
        try:
            super()._loop(steps, callbacks)
        except _LOST as error:
            raise Preempted(
                f"Another worker was lost ({type(error).__name__}; TensorFlow names it above). "
                "Start this worker again: the run continues from its last checkpoint."
            ) from error
        finally:
            self._stream.close()

    def _is_asked_to_stop(self) -> bool:
        # All workers stop after the same step; otherwise some would wait for the stopped ones.
        return any_worker(self.strategy, self._told_to_stop)

    def _train(self, name: str, first: int, steps: int) -> Metrics:
        return self._train_steps[name](self._stream.batches(name, first), steps)

    @contextlib.contextmanager
    def _tracing(self) -> Iterator[None]:
        if self.strategy.num_replicas_in_sync > 1:
            yield  # Replicas trace in threads of their own.
            return
        args = self.args
        name = task_in_turn(self.tasks, order=args.task_order, seed=args.seed, step=0)
        with ThreadPoolExecutor(1) as thread:
            tracing = thread.submit(self._train, name, 0, 0)
            yield
            tracing.result()

    def _save(self) -> None:
        previous_step = self._saved_step
        super()._save()
        if self._saved_step != previous_step:
            wait_for_workers(self.strategy)  # One process writes, and all may read next.

    def _check(self, tasks: Sequence[Task]) -> None:
        super()._check(tasks)
        for name, part in (("encoder", self.encoder), ("optimizer", self.optimizer)):
            made_here = self.strategy.extended.variable_created_in_scope
            if not all(made_here(variable.value) for variable in part.variables):
                raise ValueError(f"Expected the {name} to be made within strategy.scope().")
        if has_remote_workers(self.strategy) and self._files is None:
            raise ValueError("batch_files: expected a folder that all workers see, such as gs://…")


class TrainStep:
    """Gradient, reduction over replicas and update for one task, as one `tf.function`.

    `static_shapes`: the step is traced for each width of the task's batches, as a TPU needs.
    """

    def __init__(
        self,
        encoder: keras.Model,
        task: Task,
        optimizer: keras.optimizers.Optimizer,
        args: TrainingArguments,
        *,
        strategy: tf.distribute.Strategy,
        jit_compile: bool,
        static_shapes: bool = False,
    ) -> None:
        self.encoder = encoder
        self.loss = task.loss
        self.optimizer = optimizer
        self.strategy = strategy
        self._parts = args.gradient_accumulation_steps
        self.names = ("loss", *task.loss.metric_names)
        self._feature_names = [feature.name for feature in task.loss.features]
        self._variables = [*encoder.trainable_variables, *task.loss.trainable_variables]
        self._widths = (
            _WidthBranches(task, self._feature_names, strategy) if static_shapes else None
        )
        self._gather = ReplicaGather()
        self._pieces = PiecewiseEncoder(encoder, args.pieces) if args.pieces > 1 else None
        # A dense gradient of a large table is written and read three more times, but XLA, replicas
        # and Keras's own optimizers need a dense one.
        is_single = strategy.num_replicas_in_sync == self._parts == 1
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
        parts = micro_batches(batch, self._parts)
        values, gradients = self._gradients(parts[0])
        for part in parts[1:]:
            part_values, part_gradients = self._gradients(part)
            values += part_values
            gradients = [_add(a, b) for a, b in zip(gradients, part_gradients, strict=True)]
        pairs = [
            (gradient, variable)
            for gradient, variable in zip(gradients, self._variables, strict=True)
            if gradient is not None
        ]
        found, variables = (list(column) for column in zip(*pairs, strict=True))
        replicas = self.strategy.num_replicas_in_sync
        limits = (self.optimizer.clipnorm, self.optimizer.global_clipnorm, self.optimizer.clipvalue)
        if replicas > 1 and any(limits):
            # Keras clips before it sums over the replicas, which does not clip the whole gradient.
            # Clip the sum; each replica's share of it is then too small to be clipped again.
            context = tf.distribute.get_replica_context()
            sums = context.all_reduce(tf.distribute.ReduceOp.SUM, found)
            found = [gradient / replicas for gradient in clipped(self.optimizer, sums)]
        self.optimizer.apply(found, variables)
        return values / self._parts

    def _gradients(self, batch: Batch) -> tuple[tf.Tensor, list[tf.Tensor | None]]:
        """Loss and metrics of one micro-batch, and its share of the gradient of the whole batch."""
        if self._pieces is None:
            with tf.GradientTape() as tape:
                loss, metrics = self.loss(self.encoder, batch, training=True, gather=self._gather)
                share = self._share(loss)
            gradients = tape.gradient(share, [v.value for v in self._variables])
        else:
            loss, metrics, gradients = self._cached_gradients(batch, self._pieces)
        convert = _rows_once if self._takes_sparse else tf.convert_to_tensor
        gradients = [None if g is None else convert(g) for g in gradients]
        return tf.stack([loss, *(metrics[name] for name in self.names[1:])]), gradients

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
        return loss / (self._parts * self.strategy.num_replicas_in_sync)


def _rows_once(gradient: tf.Tensor | tf.IndexedSlices) -> tf.Tensor | tf.IndexedSlices:
    """Sums the repeated rows of a sparse gradient: their norm is not that of the gradient."""
    if not isinstance(gradient, tf.IndexedSlices):
        return gradient
    rows, places = tf.unique(gradient.indices)
    sums = tf.math.unsorted_segment_sum(gradient.values, places, tf.size(rows))
    return tf.IndexedSlices(sums, rows, gradient.dense_shape)


def _add(a: tf.Tensor | None, b: tf.Tensor | None) -> tf.Tensor | None:
    """The sum of two gradients; None if the loss does not depend on the variable."""
    return None if a is None or b is None else a + b


class _WidthBranches:
    """Calls a step with a batch of known sizes, by a trace for each width, as a TPU needs."""

    def __init__(self, task: Task, names: Sequence[str], strategy: tf.distribute.Strategy) -> None:
        data, rows = task.data, task.batch_size // strategy.num_replicas_in_sync
        varying_names = [name for name in names if None in data.row_shape(name)]
        self._strategy = strategy
        self._widest = max(varying_names, key=lambda name: data.arrays[name].shape[1], default=None)
        self._shapes: dict[int, dict[str, list[int | None]]] = {}
        if self._widest is not None:
            for bucket in data.buckets:
                shapes = {name: [rows, *data.row_shape(name, width=bucket)] for name in names}
                self._shapes.setdefault(shapes[self._widest][1], shapes)

    def __call__(self, step: Callable[[Batch], tf.Tensor], batch: Batch) -> tf.Tensor:
        """The step's result for a batch; all parts of its replicas have the same width."""
        if self._widest is None:
            return step(batch)

        def shaped(shapes: dict[str, list[int | None]]) -> tf.Tensor:
            shaped_batch = {}
            for name, shape in shapes.items():
                ensure = functools.partial(tf.ensure_shape, shape=shape)
                part = tf.nest.map_structure(ensure, batch[name], expand_composites=True)
                shaped_batch[name] = part
            return step(shaped_batch)

        branches = [functools.partial(shaped, shapes) for shapes in self._shapes.values()]
        part = self._strategy.experimental_local_results(batch[self._widest])[0]
        narrower = tf.shape(part)[1] > tf.constant([*self._shapes])
        return tf.switch_case(tf.reduce_sum(tf.cast(narrower, tf.int32)), branches)


def kept_bytes(encoder: keras.Model, width: int) -> int:
    """About the bytes that the gradient of one text of `width` tokens needs.

    It is half of all values of the encoding; for MiniLM, a gradient kept 0.36 of them.
    """
    spec = tf.TensorSpec([1, width], tf.int32)
    graph = tf.function(lambda ids: encoder(ids, training=True), autograph=False)
    operations = graph.get_concrete_function(spec).graph.get_operations()
    values = (v for each in operations if each.type not in _NO_COPIES for v in each.outputs)
    shapes = ((v.shape, v.dtype) for v in values if v.dtype.is_floating)
    known = (
        shape.num_elements() * dtype.size for shape, dtype in shapes if shape.is_fully_defined()
    )
    return max(2, sum(known)) // 2


class PiecewiseEncoder:
    """Encodes a batch in pieces, and computes the gradients of the weights in the same pieces.

    GradCache (Gao et al. 2021, section 3): the vectors of all pieces are computed without keeping
    what a gradient needs. The loss is that of the whole batch. Then each piece is encoded once
    more, with the same dropout, and the gradients of its vectors are propagated to the weights.
    This takes one more forward pass, keeps the activations of only one piece, and gives the same
    gradients.

    The pieces are iterations of a loop: if it were unrolled, XLA would see that the second encoding
    repeats the first, and would keep the first. The encoder's only state must be that of its
    `SeedGenerator`s: both loops begin with the same state, and the second ends with the state that
    a single loop would leave.
    """

    def __init__(self, encoder: keras.Model, pieces: int) -> None:
        self.encoder = encoder
        self.pieces = pieces
        self._weights = encoder.trainable_variables
        weights = {id(weight) for weight in encoder.weights}
        self._seeds = [variable for variable in encoder.variables if id(variable) not in weights]

    def __call__(self, texts: list[tf.Tensor]) -> list[tf.Tensor]:
        """The vectors of ids `[rows, length]` in training, without gradients of the weights."""
        parts = [self._cut(ids) for ids in texts]
        shape = [len(texts), parts[0].shape[1], self.encoder.dimension]

        def encode(
            piece: tf.Tensor, seeds: list[tf.Tensor], vectors: tf.TensorArray
        ) -> tuple[tf.Tensor, list[tf.Tensor], tf.TensorArray]:
            encoded, seeds = self._encode(parts, piece, seeds)
            return piece + 1, seeds, vectors.write(piece, encoded)

        vectors = self._loop(encode, tf.TensorArray(tf.float32, self.pieces, element_shape=shape))
        by_text = tf.unstack(vectors[1].stack(), axis=1)
        return [tf.reshape(each, [-1, self.encoder.dimension]) for each in by_text]

    def gradients(
        self, texts: list[tf.Tensor], vector_gradients: list[tf.Tensor]
    ) -> list[tf.Tensor | None]:
        """Encodes the batch once more, for the dense gradients of the encoder's variables."""
        parts = [self._cut(ids) for ids in texts]
        upstream = tf.stack([self._cut(gradient) for gradient in vector_gradients], axis=1)
        has_gradient = [False] * len(self._weights)  # Known once the loop's body has been traced.

        def back(
            piece: tf.Tensor, seeds: list[tf.Tensor], sums: list[tf.Tensor]
        ) -> tuple[tf.Tensor, list[tf.Tensor], list[tf.Tensor]]:
            with tf.GradientTape() as tape:
                encoded, seeds = self._encode(parts, piece, seeds)
            values = [weight.value for weight in self._weights]
            gradients = tape.gradient(encoded, values, output_gradients=upstream[piece])
            has_gradient[:] = [gradient is not None for gradient in gradients]
            # Dense before it is added: see TrainStep.
            sums = [
                total if gradient is None else total + tf.convert_to_tensor(gradient)
                for total, gradient in zip(sums, gradients, strict=True)
            ]
            return piece + 1, seeds, sums

        zeros = [tf.zeros(weight.shape, weight.dtype) for weight in self._weights]
        seeds, sums = self._loop(back, zeros)
        for variable, value in zip(self._seeds, seeds, strict=True):
            variable.assign(value)
        return [total if is_one else None for total, is_one in zip(sums, has_gradient, strict=True)]

    def _encode(
        self, parts: list[tf.Tensor], piece: tf.Tensor, seeds: list[tf.Tensor]
    ) -> tuple[tf.Tensor, list[tf.Tensor]]:
        """Encodes a piece from seed states: `[texts, rows, dimension]`, and the next states."""
        with keras.StatelessScope(list(zip(self._seeds, seeds, strict=True))) as scope:
            vectors = encode_together(self.encoder, [part[piece] for part in parts], training=True)
        return tf.stack(vectors), [scope.get_current_value(seed) for seed in self._seeds]

    def _loop(self, body: Callable[..., Any], value: Any) -> tuple[list[tf.Tensor], Any]:
        """Runs `(piece, seeds, value) → …` over the pieces; returns the last seeds and value."""
        seeds = [tf.convert_to_tensor(seed.value) for seed in self._seeds]
        _, seeds, value = tf.while_loop(
            lambda piece, *_: piece < self.pieces,
            body,
            (tf.constant(0), seeds, value),
            parallel_iterations=1,
            maximum_iterations=self.pieces,
        )
        return seeds, value

    def _cut(self, rows: tf.Tensor) -> tf.Tensor:
        """`[rows, …]` → `[pieces, rows / pieces, …]`."""
        # Widths may be known only when the step runs.
        widths = keras.ops.shape(rows)[1:]
        return tf.reshape(rows, [self.pieces, rows.shape[0] // self.pieces, *widths])


class TaskStream:
    """The batches of each task, as functions of seed and step, shared by a strategy's replicas.

    They come from record files in the folder `files` (see `BatchFiles`), or from the arrays. A step
    cuts each batch into `micro_batches`.
    """

    def __init__(
        self,
        tasks: Mapping[str, Task],
        *,
        strategy: tf.distribute.Strategy,
        seed: int,
        micro_batches: int,
        files: str | None = None,
    ) -> None:
        self.tasks = tasks
        self.strategy = strategy
        self.seed = seed
        self.micro_batches = micro_batches
        self._iterators: dict[str, Iterator[Batch]] = {}
        self._files = (
            {} if files is None else {name: self._batch_files(name, files) for name in tasks}
        )
        self._ends: Mapping[str, int] = {}

    def prepare(self, starts: Mapping[str, int], ends: Mapping[str, int], *, writes: bool) -> None:
        """If batches come from files, this process writes the missing ones, or waits for them.

        `starts` and `ends`: task → number of batches trained on at the start and the end of a run.
        """
        if self._files and writes:
            for name, files in self._files.items():
                files.write(starts[name], ends[name])
        if self._files:
            self._ends = ends
            wait_for_workers(self.strategy)

    def batches(self, name: str, start_step: int) -> Iterator[Batch]:
        """A task's batches; `start_step` only matters when this process begins to read them."""
        if name not in self._iterators:
            distributed = self.strategy.distribute_datasets_from_function(
                functools.partial(self._host_dataset, name, start_step)
            )
            self._iterators[name] = iter(distributed)
        return self._iterators[name]

    def close(self) -> None:
        """Ends the pipelines; the next call of `batches` starts one anew, at its `start_step`.

        The thread of a pipeline runs Python for its rows (`array_dataset`). If Python's garbage
        collector ended the pipeline, it could do so in that same thread, which would then wait for
        itself, and garbage would never be collected again in this process.
        """
        self._iterators.clear()

    def _host_dataset(
        self, name: str, start_step: int, context: tf.distribute.InputContext
    ) -> tf.data.Dataset:
        """Data of a host's replicas; all hosts together read the batches of a single device."""
        replicas = context.num_replicas_in_sync
        local_count = replicas // context.num_input_pipelines
        first_replica = context.input_pipeline_id * local_count
        share = range(first_replica, first_replica + local_count)
        if name in self._files:
            end = self._ends[name]
            files = self._files[name]
            return files.dataset(start_step, end, replica_count=replicas, replicas=share)
        return array_dataset(
            self.tasks[name].data,
            self.tasks[name].batch_size,
            seed=shuffling_seed(name, seed=self.seed),
            start_step=start_step,
            replica_count=replicas,
            replicas=share,
            micro_batches=self.micro_batches,
        )

    def _batch_files(self, name: str, folder: str) -> BatchFiles:
        task = self.tasks[name]
        return BatchFiles(
            folder,
            name,
            task.data,
            columns=[feature.name for feature in task.loss.features],
            batch_size=task.batch_size,
            seed=shuffling_seed(name, seed=self.seed),
            micro_batches=self.micro_batches,
            replicas=self.strategy.num_replicas_in_sync,
        )


def array_dataset(
    data: ArrayData,
    batch_size: int,
    *,
    seed: int,
    start_step: int = 0,
    replica_count: int = 1,
    replicas: range = range(1),
    micro_batches: int = 1,
) -> tf.data.Dataset:
    """The batches from `start_step` on, without end, as dicts of tensors `[rows, …]`.

    An element is the part of one of the `replicas`, of `replica_count` that share each batch. They
    share each of its micro-batches, so that these hold the same rows for any number of replicas.
    """
    data.check_batch(batch_size, parts=replica_count * micro_batches)
    positions = np.arange(batch_size).reshape(micro_batches, replica_count, -1)
    names = list(data.arrays)

    def rows_of(element: np.ndarray) -> list[np.ndarray]:
        step, local = divmod(int(element), len(replicas))
        part = positions[:, replicas[local]].reshape(-1)
        return list(data.batch(start_step + step, batch_size, seed, part=part).values())

    def load(element: tf.Tensor) -> dict[str, tf.Tensor]:
        types = [tf.as_dtype(data.arrays[name].dtype) for name in names]
        values = tf.numpy_function(rows_of, [element], types, stateful=False)
        for name, value in zip(names, values, strict=True):
            value.set_shape([batch_size // replica_count, *data.row_shape(name)])
        return dict(zip(names, values, strict=True))

    # One call at a time: the rows are read in order, and the epoch's permutation is kept once.
    elements = tf.data.Dataset.range(np.iinfo(np.int64).max)
    return endless(elements.map(load, num_parallel_calls=1))
