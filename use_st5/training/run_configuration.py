"""What must be the same for a run to continue from a checkpoint."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import keras

from use_st5.training.task import Task


def run_configuration(
    encoder: keras.Model,
    tasks: Sequence[Task],
    optimizer: keras.optimizers.Optimizer,
    **options: Any,
) -> dict[str, str]:
    """Describes a run by everything that its steps depend on.

    The number of replicas is not part of it: they share a batch, whatever their number.

    Args:
        encoder: Built.
        tasks: Their heads built.
        optimizer: The optimizer.
        **options: Further values, such as the seed.

    Returns:
        JSON text of each value by dotted name, such as `tasks.nli.batch_size`.
    """
    serialized = keras.saving.serialize_keras_object(optimizer)
    serialized["config"].pop("name", None)  # numbered by process
    described = {
        **options,
        "encoder": {
            # By position: Keras numbers names by process, a name proves nothing.
            str(i): f"{variable.dtype} {list(variable.shape)}"
            for i, variable in enumerate(encoder.variables)
        },
        "optimizer": serialized,
        "tasks": {task.name: _task(task) for task in tasks},
    }
    return dict(_flat(described, ""))


def check_same(saved: Mapping[str, str], current: Mapping[str, str], folder: Path) -> None:
    """Checks that a run has the configuration of the checkpoint that it is to continue from.

    Raises:
        ValueError: They differ; each difference is listed.
    """
    missing = "nothing"
    lines = [
        f"{name}: the checkpoint has {saved.get(name, missing)}, "
        f"this run {current.get(name, missing)}"
        for name in sorted({*saved, *current})
        if saved.get(name) != current.get(name)
    ]
    orders = [_task_order(each) for each in (saved, current)]
    if not lines and orders[0] != orders[1]:
        # The draw of tasks and the optimizer's variables go by their positions.
        lines = [f"the order of the tasks: the checkpoint has {orders[0]}, this run {orders[1]}"]
    if lines:
        raise ValueError(
            f"Expected the settings of the checkpoint in {folder}, to continue from it. Use them, "
            "or choose another folder. The differences:\n  " + "\n  ".join(lines)
        )


def _task_order(configuration: Mapping[str, str]) -> list[str]:
    names = (name.split(".") for name in configuration)
    return list(dict.fromkeys(parts[1] for parts in names if parts[0] == "tasks"))


def _task(task: Task) -> dict[str, Any]:
    loss = task.loss.get_config()
    loss.pop("name")  # numbered by process
    # Named where it acts alone: runs from before there was such a thing continue.
    distinct = {"distinct": task.data.distinct} if task.data.distinct else {}
    return {
        **distinct,
        "rate": task.rate,
        "batch_size": task.batch_size,
        "examples": len(task.data),
        "loss": {"class": type(task.loss).__name__, **loss},
    }


def _flat(value: Any, name: str) -> list[tuple[str, str]]:
    """The leaves of nested mappings, each with its dotted name, as JSON text."""
    if isinstance(value, Mapping) and value:
        return [
            leaf
            for key, item in value.items()
            for leaf in _flat(item, f"{name}.{key}" if name else str(key))
        ]
    return [(name, json.dumps(value, default=str))]
