"""The training loop under JAX, on one device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras

from use_st5.training.array_checkpoints import ArrayCheckpoints
from use_st5.training.jax_step import JaxStep
from use_st5.training.task import Task
from use_st5.training.task_draw import shuffling_seed
from use_st5.training.training_loop import Metrics, TrainingLoop, Variables


class JaxTrainer(TrainingLoop):
    """Trains one encoder on several tasks under JAX, on its first device.

    For accelerators that TensorFlow does not know; TensorFlow need not be installed. Given the
    same initial weights it makes the steps of `Trainer`, dropout apart, which draws other numbers.

    Args:
        encoder: As in `TrainingLoop`.
        tasks: As in `TrainingLoop`.
        optimizer: As in `TrainingLoop`.
        **options: Those of `TrainingLoop`.

    Raises:
        ValueError: What `TrainingLoop` raises, or Keras's backend is not JAX.
    """

    def __init__(
        self,
        encoder: keras.Model,
        tasks: Sequence[Task],
        optimizer: keras.optimizers.Optimizer,
        **options: Any,
    ) -> None:
        super().__init__(encoder, tasks, optimizer, **options)
        self._steps = {
            name: JaxStep(
                encoder,
                task,
                optimizer,
                trainable=self._trainable_variables(),
                accumulation=self.accumulation,
                gradient_cache=self.gradient_cache,
            )
            for name, task in self.tasks.items()
        }

    def _train(self, name: str, first: int) -> Metrics:
        task = self.tasks[name]
        seed = shuffling_seed(name, seed=self.seed)
        steps = range(first, first + self.steps_per_call)
        return self._steps[name](task.data.batch(step, task.batch_size, seed) for step in steps)

    def _open(self, variables: Variables, keep: int) -> ArrayCheckpoints:
        return ArrayCheckpoints(self.folder, variables, keep=keep)

    def _check(self, tasks: Sequence[Task]) -> None:
        if keras.config.backend() != "jax":
            raise ValueError(
                "Expected Keras's backend to be JAX: set KERAS_BACKEND=jax before Keras is "
                f"imported. Received: {keras.config.backend()}"
            )
        super()._check(tasks)
        for task in tasks:
            task.data.check_batch(task.batch_size, seed=shuffling_seed(task.name, seed=self.seed))
