"""Run by tests in fresh processes: a short toy training under the strategy named on the line.

usage: strategy_run.py STRATEGY REPLICAS [DROPOUT]; prints as JSON the losses, and the sum of the
weights as they come back from the checkpoint, which is in the folder STRATEGY.
"""

from __future__ import annotations

import json
import sys

import keras
import numpy as np
import tensorflow as tf

from tests.training import toy
from use_st5.training.strategies import strategy_by_name
from use_st5.training.trainer import Trainer


def main(name: str, replicas: int, dropout: float) -> None:
    """Trains toy tasks for 24 steps, with everything that replicas could get wrong."""
    cpus = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(
        cpus[0], [tf.config.LogicalDeviceConfiguration()] * replicas
    )
    devices = [f"/cpu:{i}" for i in range(replicas)] if name == "mirrored" else None
    strategy = strategy_by_name(name, devices=devices)
    keras.utils.set_random_seed(3)
    with strategy.scope():
        encoder = toy.ToyEncoder(dropout=dropout)
        schedule = keras.optimizers.schedules.PolynomialDecay(1e-2, 24)
        optimizer = keras.optimizers.Adam(schedule, global_clipnorm=0.05)
    trainer = Trainer(
        encoder,
        toy.tasks(only=("talk", "teacher")),
        optimizer,
        strategy=strategy,
        steps_per_call=2,
        accumulation=2,
        folder=name,
        evaluate=lambda: {"score": 1.0},
        progress=False,
    )
    history = trainer.run(24)
    for variable in encoder.trainable_variables:
        variable.assign(np.zeros(variable.shape))
    trainer.restore_best()
    total = float(sum(np.sum(np.abs(v.numpy())) for v in encoder.trainable_variables))
    records = [[r["task"], r["loss"]] for r in history.records]
    result = {"replicas": strategy.num_replicas_in_sync, "losses": records, "weights": total}
    sys.stdout.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]) if len(sys.argv) > 3 else 0.0)
