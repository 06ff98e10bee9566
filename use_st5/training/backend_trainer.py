"""The training loop that fits Keras's backend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import keras

from use_st5.training.task import Task
from use_st5.training.training_loop import TrainingLoop

if TYPE_CHECKING:
    from use_st5.trainable_encoder import TrainableEncoder


def backend_trainer(
    encoder: TrainableEncoder | keras.Model,
    tasks: Sequence[Task],
    optimizer: keras.optimizers.Optimizer,
    *,
    jit_compile: bool | Literal["auto"] = "auto",
    tensorboard: bool = False,
    **options: Any,
) -> TrainingLoop:
    """A `Trainer` under TensorFlow, a `JaxTrainer` under JAX, with the same options.

    Args:
        encoder: As in `TrainingLoop`.
        tasks: As in `TrainingLoop`.
        optimizer: As in `TrainingLoop`.
        jit_compile: As in `Trainer`; JAX compiles in any case.
        tensorboard: As in `Trainer`; its files need TensorFlow, and under JAX there are none.
        **options: Those of `TrainingLoop`.
    """
    # Imported here: each needs its backend, and one machine need not have both.
    if keras.config.backend() == "jax":
        from use_st5.training.jax_trainer import JaxTrainer

        return JaxTrainer(encoder, tasks, optimizer, **options)
    from use_st5.training.trainer import Trainer

    return Trainer(
        encoder, tasks, optimizer, jit_compile=jit_compile, tensorboard=tensorboard, **options
    )
