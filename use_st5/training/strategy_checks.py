"""What a `tf.distribute` strategy asks of a run."""

from __future__ import annotations

import keras
import tensorflow as tf


def check_xla(jit_compile: bool, *, replicas: int) -> None:
    """Checks that XLA is not asked to compile a step of several replicas.

    Raises:
        ValueError: It is.
    """
    if jit_compile and replicas > 1:
        raise ValueError(
            "XLA cannot compile a step of several replicas here (see the trainer's jit_compile). "
            f"Received: jit_compile=True with {replicas} replicas"
        )


def check_scope(
    strategy: tf.distribute.Strategy,
    encoder: keras.Model,
    optimizer: keras.optimizers.Optimizer,
) -> None:
    """Checks that both were made in the strategy's scope.

    Raises:
        ValueError: They were not.
    """
    for what, variables in (("encoder", encoder.variables), ("optimizer", optimizer.variables)):
        for variable in variables:
            if not strategy.extended.variable_created_in_scope(variable.value):
                raise ValueError(
                    f"Expected the {what} to be made within `with strategy.scope():`. "
                    f"Its variable {variable.path} was made outside."
                )
