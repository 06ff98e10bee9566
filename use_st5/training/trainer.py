"""The training loop under TensorFlow and any `tf.distribute` strategy."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import keras
import tensorflow as tf

from use_st5.training.reporter import ScalarWriter, TensorBoardWriter
from use_st5.training.strategies import check_scope, check_xla, is_chief, wait_for_workers
from use_st5.training.task import Task
from use_st5.training.task_stream import TaskStream
from use_st5.training.train_step import TrainStep
from use_st5.training.training_loop import Metrics, TrainingLoop

if TYPE_CHECKING:
    from use_st5.trainable_encoder import TrainableEncoder


class Trainer(TrainingLoop):
    """Trains one encoder on several tasks under TensorFlow.

    Args:
        encoder: As in `TrainingLoop`; made in the strategy's scope, like the optimizer.
        tasks: As in `TrainingLoop`.
        optimizer: As in `TrainingLoop`.
        strategy: Where to run (see `strategy_by_name`); None: the one in scope.
        jit_compile: Whether XLA compiles the whole step. "auto": with one replica, since XLA cannot
            compile the collectives of several on CPUs and GPUs (`merge_call` needs Python between
            the replicas); on TPUs everything is compiled anyhow.
        tensorboard: Whether to write TensorBoard's files to `folder/logs`.
        **options: Those of `TrainingLoop`: folder, seed, steps_per_call, accumulation,
            gradient_cache, evaluate, evaluate_every, monitor, mode, checkpoint_every,
            keep_checkpoints, callbacks and progress.

    Raises:
        ValueError: What `TrainingLoop` raises, or the encoder or the optimizer is not in the
            strategy's scope.
    """

    def __init__(
        self,
        encoder: TrainableEncoder | keras.Model,
        tasks: Sequence[Task],
        optimizer: keras.optimizers.Optimizer,
        *,
        strategy: tf.distribute.Strategy | None = None,
        jit_compile: bool | Literal["auto"] = "auto",
        tensorboard: bool = False,
        **options: Any,
    ) -> None:
        self.strategy = strategy or tf.distribute.get_strategy()
        self.jit_compile = self._replicas == 1 if jit_compile == "auto" else jit_compile
        self.tensorboard = tensorboard
        super().__init__(encoder, tasks, optimizer, **options)
        self._train_steps = {name: self._train_step(task) for name, task in self.tasks.items()}
        self._stream = TaskStream(
            self.tasks, strategy=self.strategy, seed=self.seed, micro_batches=self.accumulation
        )

    def _learning_rate(self) -> float:
        # By a tensor: Keras cannot read a variable of several replicas as a number.
        return float(tf.convert_to_tensor(self.optimizer.learning_rate))

    @property
    def _replicas(self) -> int:
        return self.strategy.num_replicas_in_sync

    @property
    def _is_chief(self) -> bool:
        return is_chief(self.strategy)

    def _scope(self) -> contextlib.AbstractContextManager:
        return self.strategy.scope()

    def _writer(self) -> ScalarWriter | None:
        if self.folder is None or not self.tensorboard or not self._is_chief:
            return None
        return TensorBoardWriter(Path(self.folder, "logs"))

    def _train(self, name: str, first: int) -> Metrics:
        return self._train_steps[name](self._stream.batches(name, first), self.steps_per_call)

    def _save(self) -> None:
        saved = self._saved_step
        super()._save()
        if self._saved_step != saved:
            wait_for_workers(self.strategy)  # One writes, all may read it next.

    def _train_step(self, task: Task) -> TrainStep:
        return TrainStep(
            self.encoder,
            task,
            self.optimizer,
            strategy=self.strategy,
            accumulation=self.accumulation,
            gradient_cache=self.gradient_cache,
            jit_compile=self.jit_compile,
        )

    def _check(self, tasks: Sequence[Task]) -> None:
        super()._check(tasks)
        check_xla(self.jit_compile, replicas=self._replicas)
        check_scope(self.strategy, self.encoder, self.optimizer)
        if self.tensorboard and self.folder is None:
            raise ValueError("TensorBoard's files need a folder. Received: folder=None")
