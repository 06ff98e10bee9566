"""The training loop that fits Keras's backend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import keras

from use_st5.training.task import Task
from use_st5.training.training_loop import TrainingLoop

if TYPE_CHECKING:
    from use_st5.trainable_encoder import TrainableEncoder


def backend_loop(
    encoder: TrainableEncoder | keras.Model,
    tasks: Sequence[Task],
    optimizer: keras.optimizers.Optimizer,
    *,
    jit_compile: bool | Literal["auto"] = "auto",
    tensorboard: bool = False,
    **options: Any,
) -> TrainingLoop:
    """A `TensorFlowLoop` under TensorFlow, a `JaxLoop` under JAX, with the same options.

    Args:
        encoder: As in `TrainingLoop`.
        tasks: As in `TrainingLoop`.
        optimizer: As in `TrainingLoop`.
        jit_compile: As in `TensorFlowLoop`; JAX compiles in any case.
        tensorboard: As in `TensorFlowLoop`; under JAX there are no files.
        **options: Those of `TrainingLoop`.
    """
    # Imported here: each needs its backend, and one machine need not have both.
    if keras.config.backend() == "jax":
        from use_st5.training.jax_loop import JaxLoop

        return JaxLoop(encoder, tasks, optimizer, **options)
    from use_st5.training.tensorflow_loop import TensorFlowLoop

    return TensorFlowLoop(
        encoder, tasks, optimizer, jit_compile=jit_compile, tensorboard=tensorboard, **options
    )
