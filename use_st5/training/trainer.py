"""`Trainer`: an encoder, data sets with their losses, and arguments."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import keras

from use_st5.data.arrays import (
    ArrayData,
    Dataset,
    PreparedColumn,
    fitting_batch_size,
    prepare,
    rows_of,
)
from use_st5.io.progress import watched
from use_st5.losses.task_loss import TaskLoss, VectorLoss
from use_st5.training.arguments import ModelPart, TrainingArguments
from use_st5.training.history import History
from use_st5.training.loop import TrainingLoop
from use_st5.training.task import Task
from use_st5.training.tasks import TASKS

if TYPE_CHECKING:
    from use_st5.trainable_encoder import TrainableEncoder

# Tokens of a text that a decoder predicts.
_DECODED_TOKENS = 20
# Widths of batches, which hold texts of similar lengths.
_WIDTHS = (16, 32, 64, 128, 256)
# Attributes of a BERT: embeddings that are added to those of the tokens, and the norm of the sum.
_BESIDE_THE_TABLE = ("position_embedding", "type_embedding", "embedding_norm")
# A function from `encode`, or from a Keras model, to scores by name.
Evaluate = Callable[[Any], Mapping[str, float]]


class Trainer:
    """Trains an encoder on one or several data sets, each with its loss.

    Each step uses a batch of one data set. Batches are a function of seed and step: with a `folder`
    a training that was interrupted continues from its last checkpoint, to the same weights. The
    trainer uses the backend of Keras, TensorFlow or JAX.

    A data set is a DataFrame, an Arrow table, any iterable of dicts (a Hugging Face `Dataset` is
    one), a `tf.data.Dataset` of dicts, or `ArrayData`. Its texts become arrays of ids on disk
    (`use_st5.data.prepare`). Its columns are found by the names of the loss's features, or by the
    names that `TASKS` knows, such as "question" and "answer".

    Args:
        encoder: The encoder to train; or a Keras model, if all data are arrays.
        tasks: Name → data set and loss. A name has letters, digits and underscores.
        args: How to train; None: the defaults.
        evaluate: A function that gets `encode`, which maps texts to vectors, or the Keras model if
            there is no encoder, and returns scores by name. It is called during the training and at
            its end. `ValidationSet.scores` is such a function.
        monitor: The score that chooses the best weights; None: the first.
        mode: Whether the highest ("max") or the lowest ("min") score is best.
        evaluate_start: Whether the encoder is also evaluated before the first step. The start may
            then be the best.
        keep_best: Number of the best checkpoints that stay in `folder`, for `restore_best`.
        restore_best: Whether the encoder has the best weights at the end, or those of the last
            step.
        batch_sizes: Task → its examples in a step; `args.batch_size` for a task not named here.
        mixing_weights: Task → its weight in the draw of tasks; the number of its examples for a
            task not named here. In a cycle, the number of steps that it has in a row, by default
            one call from the host.
        callbacks: Keras callbacks. For them a batch is one call from the host, and an epoch ends
            with each evaluation.
        folder: The folder of TensorBoard's files and of checkpoints, from which a later call
            continues; None: nothing is kept.
        arrays: The folder in which the data sets are kept as arrays, and from which a later call
            with the same data sets takes them; None: a temporary folder.
        strategy: A `tf.distribute` strategy, in whose scope encoder and losses were made.
        batch_files: Folder of the batches for workers in other processes (`TensorFlowLoop`).
        progress: Whether to show progress on the standard error output.

    Raises:
        ValueError: A data set does not have the columns of its loss, or arguments do not fit each
            other. It is raised before the first step.

    Examples:
        >>> trainer = Trainer(
        ...     encoder,
        ...     {"faq": (rows, ContrastiveLoss(temperature=0.05))},
        ...     TrainingArguments(epochs=1, batch_size=32),
        ... )
        >>> trainer.train()
        >>> encoder.export("tuned")
    """

    def __init__(
        self,
        encoder: TrainableEncoder | keras.Model,
        tasks: Mapping[str, tuple[Dataset | ArrayData, TaskLoss]],
        args: TrainingArguments | None = None,
        *,
        evaluate: Evaluate | None = None,
        monitor: str | None = None,
        mode: Literal["max", "min"] = "max",
        evaluate_start: bool = True,
        keep_best: int = 1,
        restore_best: bool = True,
        batch_sizes: Mapping[str, int] | None = None,
        mixing_weights: Mapping[str, float] | None = None,
        callbacks: Sequence[keras.callbacks.Callback] = (),
        folder: str | os.PathLike[str] | None = None,
        arrays: str | os.PathLike[str] | None = None,
        strategy: Any = None,
        batch_files: str | os.PathLike[str] | None = None,
        progress: bool = True,
    ) -> None:
        self.args = args or TrainingArguments()
        self._model = encoder if isinstance(encoder, keras.Model) else encoder.model
        self._encoder = None if isinstance(encoder, keras.Model) else encoder
        self._evaluate, self._evaluate_start = evaluate, evaluate_start
        self._monitor, self._mode, self._callbacks = monitor, mode, callbacks
        self._folder, self._strategy, self._batch_files = folder, strategy, batch_files
        self._progress = progress
        self._keep_best = keep_best
        self._restores_best = restore_best and evaluate is not None
        if arrays is None:
            arrays = tempfile.mkdtemp()
            weakref.finalize(self, shutil.rmtree, arrays, ignore_errors=True)
        sizes, weights = batch_sizes or {}, mixing_weights or {}
        for argument, mapping in (("mixing_weights", weights), ("batch_sizes", sizes)):
            if extra_names := set(mapping) - set(tasks):
                names = f"expected names among {[*tasks]}, received {sorted(extra_names)}"
                raise ValueError(f"{argument}: {names}.")
        losses = {name: loss for name, (_, loss) in tasks.items()}
        all_data = {
            name: self._array_data(name, dataset, loss, f"{os.fspath(arrays)}/{name}")
            for name, (dataset, loss) in tasks.items()
        }
        if self.args.micro_batch_size == "auto":
            pairs = [(losses[name], data) for name, data in all_data.items()]
            micro = fitting_micro_batch_size(self._model, pairs, self.args.part_size)
            self.args = dataclasses.replace(self.args, micro_batch_size=micro)
        self._tasks = []
        for name, data in all_data.items():
            size = fitting_batch_size(
                sizes.get(name, self.args.batch_size),
                len(data),
                replicas=1 if strategy is None else strategy.num_replicas_in_sync,
                micro_batches=self.args.gradient_accumulation_steps,
                pieces=self.args.pieces,
            )
            self._tasks.append(Task(name, losses[name], data, batch_size=size))
        size = self.args.batch_size
        # In batches of this size: that of a task may be another, or its data set smaller.
        self._examples = sum(len(each.data) * size / each.batch_size for each in self._tasks)
        self.steps = self.args.steps_of(self._examples)
        turn = float(self.args.execution_steps(self.steps))
        in_turn = self.args.task_order == "cycle"
        for place, task in enumerate(self._tasks):
            weight = weights.get(task.name, turn if in_turn else float(len(task.data)))
            self._tasks[place] = dataclasses.replace(task, mixing_weight=weight)

    def train(self) -> History:
        """Makes the steps, and gives the encoder the best weights if it is evaluated.

        Returns:
            The steps, the losses and the evaluations.
        """
        with contextlib.ExitStack() as stack:
            folder = self._folder
            if folder is None and self._restores_best:  # The best weights are kept there.
                folder = stack.enter_context(tempfile.TemporaryDirectory())
            stack.enter_context(frozen_parts(self._model, self.args.frozen))
            with strategy_scope(self._strategy):
                optimizer = self._optimizer()
            loop = self._loop(optimizer, folder)
            history = loop.run(self.steps)
            if self._restores_best:
                loop.restore_best()
            self._restore_best = loop.restore_best
            return history

    def restore_best(self, place: int = 0) -> None:
        """Gives the encoder weights of `keep_best` checkpoints, after `train` with a `folder`.

        Args:
            place: 0 is the best, 1 the second best.
        """
        self._restore_best(place)

    def _optimizer(self) -> keras.optimizers.Optimizer:
        if self.args.learning_rate is None and not callable(self.args.optimizer):
            from use_st5.models.family import Family, known_family

            family = known_family(self._model) or Family
            rate = family.learning_rates[""]
            return dataclasses.replace(self.args, learning_rate=rate).make_optimizer(self.steps)
        return self.args.make_optimizer(self.steps)

    def _array_data(
        self, name: str, dataset: Dataset | ArrayData, loss: TaskLoss, folder: str
    ) -> ArrayData:
        """The columns of a data set that a loss reads, as arrays in a folder."""
        if isinstance(dataset, ArrayData):
            return dataset
        if self._encoder is None:
            raise ValueError(f"{name}: a Keras model has no tokenizer. Give ArrayData.")
        rows = rows_of(dataset)
        first = next(rows, None)
        if first is None:
            raise ValueError(f"{name}: expected rows, received an empty data set.")
        length = self.args.text_length(self._encoder.max_length)
        columns = columns_of(loss, [*first], length, name=name)
        rows, tokenizer = itertools.chain([first], rows), self._encoder.tokenizer
        if self._progress:
            rows = watched(rows, f"Preparing {name}", None, transient=True)
        try:
            arrays: dict[str, Any] = {**prepare(rows, columns, tokenizer, folder, reuse=True)}
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error
        ids = [feature for feature, column in columns.items() if column.kind == "ids"]
        if not ids:
            return ArrayData(arrays)
        if any(column.kind == "token_ids" for column in columns.values()):
            return ArrayData(arrays)  # A decoder reads rows of one width.
        widest = arrays[ids[0]].shape[1]
        return ArrayData(arrays, buckets=(*(each for each in _WIDTHS if each < widest), widest))

    def _loop(
        self, optimizer: keras.optimizers.Optimizer, folder: str | os.PathLike[str] | None
    ) -> TrainingLoop:
        """The loop of Keras's backend."""
        evaluate = self._evaluate
        subject = self._model if self._encoder is None else self._encoder.encode
        options: dict[str, Any] = {}
        # Imported here: each needs its backend, and one machine need not have both.
        loop: type[TrainingLoop]
        if keras.config.backend() == "jax":
            from use_st5.training.jax_loop import JaxLoop

            loop = JaxLoop
        else:
            from use_st5.training.tensorflow_step import TensorFlowLoop

            loop = TensorFlowLoop
            options = {"strategy": self._strategy, "batch_files": self._batch_files}
        call_steps = self.args.execution_steps(self.steps)
        return loop(
            self._model,
            self._tasks,
            optimizer,
            dataclasses.replace(self.args, steps_per_execution=call_steps),
            folder=folder,
            evaluate=None if evaluate is None else lambda: dict(evaluate(subject)),
            evaluate_start=self._evaluate_start,
            monitor=self._monitor,
            mode=self._mode,
            keep_best=self._keep_best,
            callbacks=self._callbacks,
            progress=self._progress,
            **options,
        )


def machine_memory() -> int:
    """The bytes of memory of this machine, or of the container that limits it."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limit = Path("/sys/fs/cgroup/memory.max")
    text = limit.read_text(encoding="ascii").strip() if limit.is_file() else "max"
    return min(memory, int(text)) if text.isdigit() else memory


def fitting_micro_batch_size(
    model: keras.Model, tasks: Sequence[tuple[TaskLoss, ArrayData]], part_size: int
) -> int | None:
    """The most examples, a divisor of `part_size`, that half of the memory holds; None: all.

    It depends on the machine's memory and not on how much of it is free, so that a continued run
    has the same steps.
    """
    if keras.config.backend() != "tensorflow":
        raise ValueError("micro_batch_size: auto needs Keras on TensorFlow. Give a number.")
    import tensorflow as tf

    if tf.config.list_physical_devices("GPU"):
        raise ValueError("micro_batch_size: auto measures the memory of a CPU. Give a number.")
    from use_st5.training.tensorflow_step import kept_bytes

    budget, size = machine_memory() / 2, part_size
    for loss, data in tasks:
        names = [feature.name for feature in loss.features if feature.kind == "ids"]
        if isinstance(loss, VectorLoss) and names:
            longest = max(data.arrays[name].shape[1] for name in names)
            size = min(size, int(budget // (len(names) * kept_bytes(model, longest))))
    size = next((n for n in range(size, 0, -1) if part_size % n == 0), 1)
    return None if size == part_size else size


def strategy_scope(strategy: Any) -> contextlib.AbstractContextManager:
    """The scope to make models, losses and optimizers in: the strategy's, if there is one."""
    return contextlib.nullcontext() if strategy is None else strategy.scope()


def columns_of(
    loss: TaskLoss, names: Collection[str], max_length: int, *, name: str
) -> dict[str, PreparedColumn]:
    """Feature of a loss → the column of a data set that it is made from.

    A column has the feature's own name, or all have names that a task of `TASKS` knows. If one is
    missing, it is a ValueError with the `name` of the data set.
    """
    features = [feature.name for feature in loss.features]
    keys = {feature: feature for feature in features}
    if not set(features) <= set(names):
        for task in TASKS.values():
            columns = task.columns_in([*names])
            task_keys = {feature: task.key_for(feature, columns) for feature in features}
            if {*task.needed, *task_keys.values()} <= set(columns):
                keys = {feature: columns[key] for feature, key in task_keys.items()}
                break
        else:
            reads = f"{name}: {type(loss).__name__} reads the columns {', '.join(features)}"
            raise ValueError(f"{reads}; received {', '.join(names)}. Rename them.")
    lengths = {"ids": max_length, "token_ids": _DECODED_TOKENS}
    return {
        feature.name: PreparedColumn(feature.kind, lengths.get(feature.kind), keys[feature.name])
        for feature in loss.features
    }


@contextlib.contextmanager
def frozen_parts(model: keras.Model, parts: Collection[ModelPart]) -> Iterator[None]:
    """Freezes parts of an encoder inside the block; after it they are trainable as before.

    The names are the same for every family. "embedding" is the token table, the attribute
    `embedding` of a model. "head" is the attribute `head`, which predicts masked words, if there is
    one. "encoder" is everything else. A table that the head uses too belongs to "embedding".
    "all_embeddings" is the token table and, in a BERT, also the tables of positions and token types
    and the norm of their sum; transformers calls these `bert.embeddings`.

    Args:
        model: A built model.
        parts: The parts to freeze.
    """
    embedding, head = (getattr(model, name, None) for name in ("embedding", "head"))
    table = {id(variable): variable for variable in getattr(embedding, "weights", [])}
    heads = {id(v): v for v in getattr(head, "weights", []) if id(v) not in table}
    side_layers = (getattr(model, name, None) for name in _BESIDE_THE_TABLE)
    sides = {id(v): v for layer in side_layers if layer is not None for v in layer.weights}
    by_part = {
        "embedding": [*table.values()],
        "all_embeddings": [*(table | sides).values()],
        "encoder": [v for v in model.weights if id(v) not in table | heads],
        "head": [*heads.values()],
    }
    for part in parts:
        if not by_part.get(part):
            part_names = [name for name, variables in by_part.items() if variables]
            raise ValueError(f"freeze: expected parts among {part_names}, received {part!r}.")
    frozen = [variable for part in parts for variable in by_part[part] if variable.trainable]
    for variable in frozen:
        variable.trainable = False
    try:
        yield
    finally:
        for variable in frozen:
            variable.trainable = True
