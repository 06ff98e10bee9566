"""`Trainer`: an encoder, data sets with their losses, and arguments."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import keras

from use_st5.losses.task_loss import TaskLoss
from use_st5.training.arguments import TrainingArguments
from use_st5.training.array_data import ArrayData, fitting_batch_size
from use_st5.training.datasets import Dataset, array_data
from use_st5.training.frozen_parts import frozen_parts
from use_st5.training.history import History
from use_st5.training.loop import TrainingLoop
from use_st5.training.task import Task

if TYPE_CHECKING:
    from use_st5.trainable_encoder import TrainableEncoder

# A function from `encode`, or from a Keras model, to scores by name.
Evaluate = Callable[[Any], Mapping[str, float]]


class Trainer:
    """Trains an encoder on one or several data sets, each with its loss.

    Each step uses a batch of one data set. Batches are a function of seed and step: with a `folder`
    a training that was interrupted continues from its last checkpoint, to the same weights. The
    trainer uses the backend of Keras, TensorFlow or JAX.

    A data set is a DataFrame, an Arrow table, any iterable of dicts (a Hugging Face `Dataset` is
    one), a `tf.data.Dataset` of dicts, or `ArrayData`, which needs no memory if its arrays are
    memory maps (`use_st5.data.prepare`). Its columns are found by the names of the loss's features,
    or by the names that `TASKS` knows, such as "question" and "answer".

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
        restore_best: Whether the encoder has the best weights at the end, or those of the last
            step.
        batch_sizes: Task → its examples in a step; `args.batch_size` for a task not named here.
        mixing_weights: Task → its weight in the draw of tasks; the number of its examples for a
            task not named here. In a cycle, the number of steps that it has in a row.
        callbacks: Keras callbacks. For them a batch is one call from the host, and an epoch ends
            with each evaluation.
        folder: The folder of TensorBoard's files and of checkpoints, from which a later call
            continues; None: nothing is kept.
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
        tasks: Mapping[str, tuple[Dataset, TaskLoss]],
        args: TrainingArguments | None = None,
        *,
        evaluate: Evaluate | None = None,
        monitor: str | None = None,
        mode: Literal["max", "min"] = "max",
        evaluate_start: bool = True,
        restore_best: bool = True,
        batch_sizes: Mapping[str, int] | None = None,
        mixing_weights: Mapping[str, float] | None = None,
        callbacks: Sequence[keras.callbacks.Callback] = (),
        folder: str | os.PathLike[str] | None = None,
        strategy: Any = None,
        batch_files: str | os.PathLike[str] | None = None,
        progress: bool = True,
    ) -> None:
        self.args = args or TrainingArguments()
        self._model = encoder if isinstance(encoder, keras.Model) else encoder.model
        self._encoder = None if isinstance(encoder, keras.Model) else encoder
        self._folder, self._strategy = folder, strategy
        self._restores_best = restore_best and evaluate is not None
        sizes = batch_sizes or {}
        self._tasks = self._made_tasks(tasks, mixing_weights or {}, sizes)
        size = self.args.batch_size
        # In batches of this size: that of a task may be another, or its data set smaller.
        self._examples = sum(len(each.data) * size / each.batch_size for each in self._tasks)
        self.steps = self.args.steps_of(self._examples)
        interval = self.args.evaluation_interval(self.steps)
        self._options: dict[str, Any] = {
            "monitor": monitor,
            "mode": mode,
            "callbacks": callbacks,
            "progress": progress,
            "seed": self.args.seed,
            "order": self.args.task_order,
            "steps_per_execution": self.args.execution_steps(self.steps),
            "gradient_accumulation_steps": self.args.gradient_accumulation_steps,
            "gradient_cache": self.args.pieces,
            "checkpoint_every": interval,
            "evaluate_at": self.args.ends(self.steps, self._examples),
        }
        if evaluate is not None:
            subject = self._model if self._encoder is None else self._encoder.encode
            self._options |= {
                "evaluate": lambda: evaluate(subject),
                "evaluate_every": interval,
                "evaluate_start": evaluate_start,
                "patience": self.args.early_stopping_patience,
            }
        if strategy is not None:
            self._options["strategy"] = strategy
        if batch_files is not None:
            self._options["batch_files"] = batch_files

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
            return history

    def _optimizer(self) -> keras.optimizers.Optimizer:
        if self.args.learning_rate is None and not callable(self.args.optimizer):
            from use_st5.models.family import Family, known_family

            family = known_family(self._model) or Family
            rate = family.learning_rates[""]
            return dataclasses.replace(self.args, learning_rate=rate).make_optimizer(self.steps)
        return self.args.make_optimizer(self.steps)

    def _made_tasks(
        self,
        tasks: Mapping[str, tuple[Dataset, TaskLoss]],
        weights: Mapping[str, float],
        sizes: Mapping[str, int],
    ) -> list[Task]:
        for argument, mapping in (("mixing_weights", weights), ("batch_sizes", sizes)):
            if extra_names := set(mapping) - set(tasks):
                raise ValueError(
                    f"{argument}: expected names among {[*tasks]}, received {sorted(extra_names)}."
                )
        parts = {
            "replicas": 1 if self._strategy is None else self._strategy.num_replicas_in_sync,
            "micro_batches": self.args.gradient_accumulation_steps,
            "pieces": self.args.pieces,
        }
        task_list = []
        for name, (dataset, loss) in tasks.items():
            data = self._arrays(name, dataset, loss)
            batch_size = sizes.get(name, self.args.batch_size)
            size = fitting_batch_size(batch_size, len(data), **parts)
            weight = weights.get(name, float(len(data)))
            task_list.append(Task(name, loss, data, mixing_weight=weight, batch_size=size))
        return task_list

    def _arrays(self, name: str, dataset: Dataset, loss: TaskLoss) -> ArrayData:
        if isinstance(dataset, ArrayData):
            return dataset
        if self._encoder is None:
            raise ValueError(
                f"{name}: a Keras model has no tokenizer. Expected ArrayData, or a "
                f"TrainableEncoder in place of the model. Received: {type(dataset).__name__}"
            )
        length = self.args.text_length(self._encoder.max_length)
        return array_data(dataset, loss, self._encoder, length, name=name)

    def _loop(
        self, optimizer: keras.optimizers.Optimizer, folder: str | os.PathLike[str] | None
    ) -> TrainingLoop:
        """The loop of Keras's backend; JAX compiles in any case."""
        loop_args = self._model, self._tasks, optimizer
        # Imported here: each needs its backend, and one machine need not have both.
        if keras.config.backend() == "jax":
            from use_st5.training.jax_loop import JaxLoop

            return JaxLoop(*loop_args, folder=folder, **self._options)
        from use_st5.training.tensorflow_step import TensorFlowLoop

        return TensorFlowLoop(
            *loop_args,
            folder=folder,
            tensorboard=folder is not None,
            jit_compile=self._jit_compile(),
            **self._options,
        )

    def _jit_compile(self) -> bool | Literal["auto"]:
        if self.args.jit_compile is not None:
            return self.args.jit_compile
        import tensorflow as tf

        from use_st5.models.family import Family, known_family
        from use_st5.training.strategies import compiles_everything

        family = known_family(self._model) or Family
        if not family.compiles:
            return False
        strategy = self._strategy
        if strategy and (strategy.num_replicas_in_sync > 1 or compiles_everything(strategy)):
            return "auto"
        # On a CPU a Transformer takes minutes to compile, and the step of a USE-DAN is slower.
        return bool(tf.config.list_physical_devices("GPU"))


def strategy_scope(strategy: Any) -> contextlib.AbstractContextManager:
    """The scope to make models, losses and optimizers in: the strategy's, if there is one."""
    return contextlib.nullcontext() if strategy is None else strategy.scope()
