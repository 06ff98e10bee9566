"""Checks before the first step of a run, and before it continues from a checkpoint."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import keras
from keras import ops

from use_st5.io.records import read_record
from use_st5.losses.vector_loss import VectorLoss
from use_st5.training.array_data import check_shared
from use_st5.training.checkpoints import fingerprint, frozen_weights
from use_st5.training.task import Order, Task

_NOT_FINITE_ADVICE = (
    "Use a smaller learning rate, or clip gradients (the optimizer's global_clipnorm), and check "
    "the data for NaN. The last checkpoint is not affected."
)


def check_tasks(
    encoder: keras.Model,
    tasks: Sequence[Task],
    *,
    replicas: int,
    micro_batches: int,
    pieces: int,
) -> None:
    """Checks the tasks of a run, and that encoder and data fit the loss of each task.

    Raises:
        ValueError: There is no task, two have the same name, a batch cannot be shared equally,
            encoder or data do not fit the loss, or a loss cannot be computed from vectors in
            pieces.
    """
    names = [task.name for task in tasks]
    if not tasks or len(set(names)) != len(names):
        raise ValueError(
            f"Expected at least one task, each of another name. Received the names: {names}"
        )
    for task in tasks:
        task.check_features()
        task.loss.check_encoder(encoder)
        parts = {"replicas": replicas, "micro_batches": micro_batches, "pieces": pieces}
        check_shared(task.batch_size, task.name, **parts)
        if pieces > 1 and not isinstance(task.loss, VectorLoss):
            raise ValueError(
                f"Expected the loss of task '{task.name}' to be a VectorLoss, for gradient_cache: "
                "one that needs nothing of the encoder but its vectors. "
                f"Received: {type(task.loss).__name__}"
            )


def check_turns(tasks: Sequence[Task], *, steps_per_execution: int) -> None:
    """Refuses weights of tasks in a cycle that are not multiples of `steps_per_execution`."""
    weights = {task.name: task.mixing_weight for task in tasks}
    if any(weight % steps_per_execution for weight in weights.values()):
        raise ValueError(
            "Expected weights that are multiples of steps_per_execution, because order='cycle' "
            f"takes them as numbers of steps. Received: {weights} with "
            f"steps_per_execution={steps_per_execution}"
        )


def check_optimizer(optimizer: keras.optimizers.Optimizer) -> None:
    """Refuses an optimizer that accumulates gradients (the trainer does) or scales the loss."""
    if optimizer.gradient_accumulation_steps:
        raise ValueError(
            "Expected an optimizer without gradient_accumulation_steps, which Keras cannot apply "
            "under tf.distribute. Use gradient_accumulation_steps of TrainingArguments."
        )
    scaling = isinstance(optimizer, keras.optimizers.LossScaleOptimizer)
    if scaling or optimizer.loss_scale_factor:
        raise ValueError(
            "Expected an optimizer without loss scaling, because the trainer does not scale its "
            "losses. "
            f"Received: {type(optimizer).__name__}, "
            f"loss_scale_factor={optimizer.loss_scale_factor}"
        )


def check_finite_loss(loss: float, task: str, *, step: int, of: int) -> None:
    """Refuses a mean loss of the last call (`of` steps, up to `step`) that is not finite."""
    if not math.isfinite(loss):
        raise FloatingPointError(
            f"Expected a finite loss. Received {loss} from task '{task}' in steps "
            f"{step - of + 1} to {step}. {_NOT_FINITE_ADVICE}"
        )


def check_finite(variables: Iterable[keras.Variable], *, step: int) -> None:
    """Refuses weights that are NaN or infinite."""
    for variable in variables:
        if not ops.all(ops.isfinite(variable.value)):
            raise FloatingPointError(
                f"Expected finite weights after step {step}, found NaN or infinity in "
                f"{variable.path}. "
                f"{_NOT_FINITE_ADVICE}"
            )


def check_mode(mode: str) -> None:
    """Refuses a mode that is neither "max" nor "min"."""
    if mode not in ("max", "min"):
        raise ValueError(f"Expected mode 'max' or 'min'. Received: {mode!r}")


def check_built(encoder: keras.Model) -> None:
    """Refuses an encoder that is not built, or has no trainable variables."""
    if not encoder.built or not encoder.trainable_variables:
        raise ValueError(
            "Expected a built encoder with trainable variables. Call encoder.build((None, None)), "
            "under tf.distribute in the strategy's scope."
        )


def run_configuration(
    encoder: keras.Model,
    tasks: Sequence[Task],
    optimizer: keras.optimizers.Optimizer,
    *,
    order: Order,
    fingerprinted: bool,
    **options: Any,
) -> dict[str, str]:
    """Describes a run by everything that its steps depend on: JSON text by dotted name.

    One such name is `tasks.nli.batch_size`. Encoder and heads must be built. The number of replicas
    is not part of the description, because any number of them shares a batch. `fingerprinted`: the
    description has a fingerprint of the frozen weights.
    """
    serialized = keras.saving.serialize_keras_object(optimizer)
    serialized["config"].pop("name", None)  # numbered by process
    layers = [encoder, *(task.loss for task in tasks)]
    frozen = [variable for layer in layers for variable in frozen_weights(layer)]
    if frozen and fingerprinted:
        options["frozen"] = fingerprint(frozen)
    if order != "drawn":  # Only if it has an effect, as in `_task`.
        options["order"] = order
    configuration = {
        **options,
        "encoder": {
            # By position: Keras numbers names by process, so that a name proves nothing.
            str(i): f"{_dtype(variable)} {list(variable.shape)}"
            for i, variable in enumerate(encoder.variables)
        },
        "optimizer": serialized,
        "tasks": {task.name: _task(task) for task in tasks},
    }
    return dict(_flat(configuration, ""))


def check_same(saved: Mapping[str, str], current: Mapping[str, str], folder: Path) -> None:
    """Refuses a configuration that differs from the checkpoint's; lists each difference."""
    saved = {_name_now(name): value for name, value in saved.items()}
    lines = _differences(saved, current, "the checkpoint has")
    orders = [_task_order(each) for each in (saved, current)]
    if not lines and orders[0] != orders[1]:
        # The draw of tasks and the optimizer's variables depend on the tasks' positions.
        lines = [f"the order of the tasks: the checkpoint has {orders[0]}, this run {orders[1]}"]
    if lines:
        raise ValueError(
            f"Expected the settings of the checkpoint in {folder}, to continue from it. Use them, "
            "or choose another folder. The differences:\n  " + "\n  ".join(lines)
        )


def _name_now(name: str) -> str:
    """The current name of a setting, which may have another name in version 0.2."""
    new_names = {
        "steps_per_call": "steps_per_execution",
        "accumulation": "gradient_accumulation_steps",
    }
    return new_names.get(name) or re.sub(r"^(tasks\..*)\.rate$", r"\1.mixing_weight", name)


def check_unchanged(path: Path, facts: Mapping[str, Any]) -> None:
    """Refuses facts that differ from those at the start of a run; lists each difference."""
    record = read_record(path, dict[str, Any], remedy="Give another folder.")
    saved, current = (dict(_flat(each, "")) for each in (record, facts))
    if differences := _differences(saved, current, "it was begun with"):
        raise ValueError(
            f"Expected the settings of {path}, to continue the run. Use them, or give another "
            "folder. The differences:\n  " + "\n  ".join(differences)
        )


def _differences(saved: Mapping[str, str], current: Mapping[str, str], said: str) -> list[str]:
    missing = "nothing"
    return [
        f"{name}: {said} {saved.get(name, missing)}, this run {current.get(name, missing)}"
        for name in sorted({*saved, *current})
        if saved.get(name) != current.get(name)
    ]


def _dtype(variable: keras.Variable) -> str:
    # Integers are the states of seeds; their type depends on the backend.
    return "integers" if "int" in variable.dtype else variable.dtype


def _task_order(configuration: Mapping[str, str]) -> list[str]:
    names = (name.split(".") for name in configuration)
    return list(dict.fromkeys(parts[1] for parts in names if parts[0] == "tasks"))


def _task(task: Task) -> dict[str, Any]:
    loss = task.loss.get_config()
    loss.pop("name", None)  # numbered by process; Keras's own configurations have none
    # Only if there are buckets, so that runs of versions without buckets continue.
    buckets = {"buckets": task.data.buckets} if task.data.buckets else {}
    return {
        **buckets,
        "mixing_weight": task.mixing_weight,
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
