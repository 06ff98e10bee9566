"""Run by tests in a fresh process: trains on one device, on two, and from batch files.

usage: devices_run.py TASK/WAY…; prints as JSON, for each case, the losses of the steps and all
weights after them, by "one", "two" and, under TensorFlow, "files" and "known sizes". Under JAX the
process must see two devices.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any

import keras
import numpy as np

from tests.training import toy
from tests.training.device_cases import WAYS, encoder_for, result, task
from use_st5.training.history import History

Results = dict[str, dict[str, list[float]]]
FIXED = {"steps_per_execution": 1}


def main(*cases: str) -> None:
    """Trains the tasks in the ways that are named."""
    train = under_jax() if keras.config.backend() == "jax" else under_tensorflow()
    runs = {}
    for case in cases:
        name, way = case.split("/")
        runs[case] = train(name, WAYS[way])
    sys.stdout.write(json.dumps(runs) + "\n")


def under_tensorflow() -> Callable[[str, Mapping[str, int]], Results]:
    """Makes a function that trains on one processor, and on two, from arrays and from files.

    The two share the batches. Pairs are also trained on two as on a TPU: with a trace for each
    width, in which all sizes are known.
    """
    import tensorflow as tf

    from use_st5.training import tensorflow_step as module

    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
    )
    # One strategy for all cases: the collectives of two in a process would disturb each other.
    places = {
        "one": tf.distribute.OneDeviceStrategy("/cpu:0"),
        "two": tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"]),
    }
    places["known sizes"] = places["two"]

    def train(name: str, options: Mapping[str, int]) -> Results:
        found = {}
        for place, strategy in places.items():
            known = place == "known sizes"
            if known and (name != "pairs" or options):
                continue
            module.compiles_everything = lambda strategy, known=known: known
            keras.utils.set_random_seed(3)
            with strategy.scope():
                encoder, optimizer = encoder_for(name), keras.optimizers.SGD(0.1)
            given = {"strategy": strategy, **FIXED, **options}
            trainer = toy.loop(module.TensorFlowLoop, encoder, [task(name)], optimizer, **given)
            start = [variable.numpy() for variable in trainer._trainable_variables()]
            found[place] = result(trainer)
            if place == "two":
                found["files"] = from_files(trainer, start)
        return found

    return train


def from_files(trainer: Any, start: list[np.ndarray]) -> dict[str, list[float]]:
    """Repeats the steps with the same compiled functions, on batches from files."""
    from use_st5.training.tensorflow_step import TaskStream

    for variable, value in zip(trainer._trainable_variables(), start, strict=True):
        variable.assign(value)
    trainer.history = History(task_steps=dict.fromkeys(trainer.tasks, 0))
    trainer._files = "batches"
    trainer._stream = TaskStream(
        trainer.tasks,
        strategy=trainer.strategy,
        seed=trainer.args.seed,
        micro_batches=trainer.args.gradient_accumulation_steps,
        files=trainer._files,
    )
    return result(trainer)


def under_jax() -> Callable[[str, Mapping[str, int]], Results]:
    """Makes a function that trains on one device, and with the batches split over two."""
    from use_st5.training.jax_loop import JaxLoop, sharded

    def train(name: str, options: Mapping[str, int]) -> Results:
        found, start = {}, []
        for place, distribution in (("one", None), ("two", sharded())):
            keras.distribution.set_distribution(distribution)
            keras.utils.set_random_seed(3)
            encoder, optimizer = encoder_for(name), keras.optimizers.SGD(0.1)
            given = {**FIXED, **options}
            trainer = toy.loop(JaxLoop, encoder, [task(name)], optimizer, **given)
            variables = trainer._trainable_variables()
            for variable, value in zip(variables, start, strict=False):
                variable.assign(value)
            start = [variable.numpy() for variable in variables]
            found[place] = result(trainer)
        return found

    return train


if __name__ == "__main__":
    main(*sys.argv[1:])
