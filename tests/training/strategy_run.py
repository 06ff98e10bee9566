"""A short toy training under a strategy; also run in fresh processes.

usage: strategy_run.py STRATEGY REPLICAS DROPOUT…; prints the result of `trained` as JSON, a line
for each share of dropout, whose checkpoint is in the folder STRATEGY/DROPOUT. With the environment
variable WORKER=HOST:PORT the training is on the processor of that worker.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tests.training import toy
from use_st5.training.optimizers import Adam
from use_st5.training.strategies import strategy_by_name
from use_st5.training.tensorflow_step import TensorFlowLoop


def trained(
    strategy: tf.distribute.Strategy, folder: str | os.PathLike[str], dropout: float
) -> dict[str, Any]:
    """Trains toy tasks for 24 steps, with everything that replicas could get wrong.

    Returns:
        The number of replicas, the tasks with their losses, and the sum of the weights as they
        come back from the checkpoint.
    """
    keras.utils.set_random_seed(3)
    with strategy.scope():
        encoder = toy.ToyEncoder(dropout=dropout)
        schedule = keras.optimizers.schedules.PolynomialDecay(1e-2, 24)
        optimizer = Adam(schedule, global_clipnorm=0.05)
    trainer = toy.loop(
        TensorFlowLoop,
        encoder,
        toy.tasks(only=("talk", "teacher")),
        optimizer,
        strategy=strategy,
        evaluation_steps=24,
        gradient_accumulation_steps=2,
        folder=folder,
        evaluate=lambda: {"score": 1.0},
    )
    history = trainer.run(24)
    for variable in encoder.trainable_variables:
        variable.assign(np.zeros(variable.shape))
    trainer.restore_best()
    total = float(sum(np.sum(np.abs(v.numpy())) for v in encoder.trainable_variables))
    records = [[r["task"], r["loss"]] for r in history.records]
    return {"replicas": strategy.num_replicas_in_sync, "losses": records, "weights": total}


def main(name: str, replicas: int, *dropouts: str) -> None:
    """Trains in this process, with a logical processor for each replica."""
    cpus = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(
        cpus[0], [tf.config.LogicalDeviceConfiguration()] * replicas
    )
    if worker := os.environ.get("WORKER"):
        tf.config.experimental_connect_to_host(worker)
        strategy = tf.distribute.OneDeviceStrategy("/job:worker/replica:0/task:0/device:CPU:0")
    elif name == "mirrored":
        strategy = tf.distribute.MirroredStrategy([f"/cpu:{i}" for i in range(replicas)])
    else:
        strategy = strategy_by_name(name)
    for dropout in dropouts:
        result = trained(strategy, Path(name, dropout), float(dropout))
        sys.stdout.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:])
