"""The training loop under TensorFlow and any `tf.distribute` strategy."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import keras
import tensorflow as tf

from use_st5.io.remote_files import remote_path
from use_st5.training.loop import Metrics, TrainingLoop
from use_st5.training.preemption import Preempted
from use_st5.training.reporter import TensorBoardWriter
from use_st5.training.strategies import (
    any_worker,
    check_scope,
    check_xla,
    compiles_everything,
    has_remote_workers,
    is_chief,
    wait_for_workers,
)
from use_st5.training.task import Task, steps_of_tasks
from use_st5.training.task_stream import TaskStream
from use_st5.training.train_step import TrainStep

if TYPE_CHECKING:
    from use_st5.trainable_encoder import TrainableEncoder

# TensorFlow's errors if it cannot end a step because of another process.
_LOST = (
    tf.errors.UnavailableError,
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.DeadlineExceededError,
)


class TensorFlowLoop(TrainingLoop):
    """Trains one encoder on several tasks under TensorFlow.

    Args:
        encoder: As in `TrainingLoop`, but made in the strategy's scope, like the optimizer.
        tasks: As in `TrainingLoop`.
        optimizer: As in `TrainingLoop`.
        strategy: The strategy to train with (see `strategy_by_name`); None: the one in scope.
        jit_compile: Whether XLA compiles the whole step. "auto": only with one replica, because
            XLA cannot compile the collectives of several on CPUs and GPUs (`merge_call` needs
            Python between the replicas); not on a TPU, where everything is compiled anyway.
        tensorboard: Whether to write TensorBoard's files to `folder/logs`.
        batch_files: A folder that all workers see, on any file system of `tf.io.gfile`; the batches
            of the whole run are written there before the first step (see `BatchFiles`), and read
            from there. None: `folder/batches` if other processes compute the steps, as on a TPU
            pod, and otherwise no files.
        **options: The other arguments of `TrainingLoop`.
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
        batch_files: str | os.PathLike[str] | None = None,
        **options: Any,
    ) -> None:
        self.strategy = strategy or tf.distribute.get_strategy()
        auto_compile = self._replicas == 1 and not compiles_everything(self.strategy)
        self.jit_compile = auto_compile if jit_compile == "auto" else jit_compile
        self.tensorboard = tensorboard
        self.batch_files = batch_files
        super().__init__(encoder, tasks, optimizer, **options)
        self._train_steps = {name: self._train_step(task) for name, task in self.tasks.items()}
        self._stream = TaskStream(
            self.tasks,
            strategy=self.strategy,
            seed=self.seed,
            micro_batches=self.gradient_accumulation_steps,
            files=self._files_folder(),
        )

    def _learning_rate(self) -> float:
        # Through a tensor: Keras cannot read a variable of several replicas as a number.
        return float(tf.convert_to_tensor(self.optimizer.learning_rate))

    @property
    def _replicas(self) -> int:
        return self.strategy.num_replicas_in_sync

    @property
    def _is_chief(self) -> bool:
        return is_chief(self.strategy)

    def _scope(self) -> contextlib.AbstractContextManager:
        return self.strategy.scope()

    def _writer(self) -> TensorBoardWriter | None:
        if self.folder is None or not self.tensorboard or not self._is_chief:
            return None
        folder = remote_path(self.folder)
        return TensorBoardWriter(f"{folder}/logs" if folder else Path(self.folder, "logs"))

    def _files_folder(self) -> str | None:
        if self.batch_files is not None:
            return remote_path(self.batch_files) or os.fspath(self.batch_files)
        if self.folder is not None and has_remote_workers(self.strategy):
            return f"{remote_path(self.folder) or os.fspath(self.folder)}/batches"
        return None

    def _loop(self, steps: int, callbacks: keras.callbacks.CallbackList) -> None:
        if self._files_folder() is not None:
            done_steps = self.history.task_steps
            new_steps = steps_of_tasks(
                self.tasks,
                range(self.history.step, steps),
                order=self.order,
                seed=self.seed,
                steps_per_turn=self.steps_per_execution,
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
        return any_worker(self.strategy, self._signal.requested)

    def _train(self, name: str, first: int, steps: int) -> Metrics:
        return self._train_steps[name](self._stream.batches(name, first), steps)

    def _save(self) -> None:
        previous_step = self._saved_step
        super()._save()
        if self._saved_step != previous_step:
            wait_for_workers(self.strategy)  # One process writes, and all may read next.

    def _train_step(self, task: Task) -> TrainStep:
        return TrainStep(
            self.encoder,
            task,
            self.optimizer,
            strategy=self.strategy,
            gradient_accumulation_steps=self.gradient_accumulation_steps,
            gradient_cache=self.gradient_cache,
            jit_compile=self.jit_compile,
            static_shapes=compiles_everything(self.strategy),
        )

    def _check(self, tasks: Sequence[Task]) -> None:
        super()._check(tasks)
        check_xla(self.jit_compile, self.strategy)
        check_scope(self.strategy, self.encoder, self.optimizer)
        if has_remote_workers(self.strategy) and self.folder is None and self.batch_files is None:
            raise ValueError(
                "batch_files: expected a folder that all workers see, such as "
                "'gs://BUCKET/batches', because other processes read the batches. Received: "
                f"batch_files=None, folder=None with {list(self.strategy.extended.worker_devices)}"
            )
