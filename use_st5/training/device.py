"""The strategy of an experiment, its replicas, and the folder of batches for workers."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable
from typing import Any

import keras

from use_st5.training.recipe import Part, StrategyName


def check_tensorflow(what: str) -> None:
    """Refuses to go on where Keras runs on another backend.

    Raises:
        ValueError: It does.
    """
    if (backend := keras.config.backend()) != "tensorflow":
        raise ValueError(
            f"{what} needs Keras on TensorFlow: unset KERAS_BACKEND before Python starts. "
            f"Received: {backend}"
        )


class Device:
    """Where the training runs, and whether this process writes.

    Args:
        name: Of the strategy; None: none. A process has one of each name.
        part: What runs. Of several workers one writes, so that each runs the training alone.
        batch_files: Where workers in other processes find the batches, as in `TensorFlowLoop`.

    Attributes:
        options: Of the trainer.
        scope: Makes the context in which variables are made.
        writes: Whether this process is the one that does.
        replicas: How many share a batch.

    Raises:
        ValueError: Keras's backend or the part has no such thing.
    """

    def __init__(
        self,
        name: StrategyName | None,
        part: Part | None,
        batch_files: str | os.PathLike[str] | None = None,
    ) -> None:
        self.options: dict[str, Any] = {}
        self.scope: Callable[[], contextlib.AbstractContextManager] = contextlib.nullcontext
        self.writes, self.replicas = True, 1
        if batch_files is not None:
            if keras.config.backend() != "tensorflow":
                raise ValueError(
                    "batch_files: expected None, because only TensorFlow has remote workers, "
                    f"received {batch_files} under {keras.config.backend()}."
                )
            self.options["batch_files"] = batch_files
        if name is None:
            return
        if keras.config.backend() != "tensorflow":
            raise ValueError(
                f"strategy: expected None under JAX, received {name}. Leave it out, or unset "
                "KERAS_BACKEND."
            )
        if name == "multi_worker" and part != "train":
            raise ValueError(
                "multi_worker: expected --part train. First run --part prepare on one machine, "
                "with an output folder that all machines see."
            )
        from use_st5.training.strategies import compiles_everything, is_chief

        strategy = _strategy(name)
        self.options["strategy"], self.scope = strategy, strategy.scope
        self.replicas = strategy.num_replicas_in_sync
        if self.replicas > 1 or compiles_everything(strategy):
            # XLA is asked for by those who measured one device; here the trainer knows better.
            self.options["jit_compile"] = "auto"
        self.writes = is_chief(strategy)


@functools.cache
def _strategy(name: StrategyName) -> Any:
    """The process's own: what was made in the scope of another of this name would not fit."""
    from use_st5.training.strategies import strategy_by_name

    kind, _, tpu = name.partition(":")
    return strategy_by_name(kind, tpu=tpu or None)
