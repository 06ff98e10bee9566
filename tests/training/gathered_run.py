"""Run by tests in a fresh process: contrastive steps on one device, and on two that gather.

Prints as JSON, for each way of running, the losses of the steps and all weights after them.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import keras
import tensorflow as tf

from tests.training import toy
from use_st5.losses.contrastive_loss import ContrastiveLoss
from use_st5.training.array_data import ArrayData
from use_st5.training.strategies import strategy_by_name
from use_st5.training.task import Task
from use_st5.training.trainer import Trainer


def main() -> None:
    """Trains the same encoder on the same batches in several ways."""
    cpus = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(
        cpus[0], [tf.config.LogicalDeviceConfiguration()] * 2
    )
    one = strategy_by_name("one", devices=["/cpu:0"])
    # One for all: the collectives of two such strategies in a process get into each other's way.
    two = strategy_by_name("mirrored", devices=["/cpu:0", "/cpu:1"])
    runs = {
        "one": trained(one),
        "two": trained(two),
        "two, cached": trained(two, gradient_cache=4),
        "one, accumulated": trained(one, accumulation=2),
        "two, accumulated, cached": trained(two, accumulation=2, gradient_cache=2),
        "two, cached, dropout": trained(two, dropout=0.5, gradient_cache=2),
    }
    sys.stdout.write(json.dumps(runs) + "\n")


def trained(
    strategy: tf.distribute.Strategy, dropout: float = 0.0, **options: Any
) -> dict[str, list[float]]:
    """Three steps of SGD, which shows the size of the gradients."""
    keras.utils.set_random_seed(3)
    with strategy.scope():
        encoder = toy.ToyEncoder(dropout=dropout)
        optimizer = keras.optimizers.SGD(0.5)
    columns = toy.arrays()
    data = dict(zip(("anchor", "positive", "negative"), columns.values(), strict=False))
    loss = ContrastiveLoss(temperature=0.1, margin=0.1, hard_negatives=True, bidirectional=True)
    task = Task("pairs", loss, ArrayData(data), batch_size=32)
    fixed = {"steps_per_call": 1, "jit_compile": False, "progress": False}
    trainer = Trainer(encoder, [task], optimizer, strategy=strategy, **fixed, **options)
    losses = [record["loss"] for record in trainer.run(3).records]
    weights = [x for v in encoder.trainable_variables for x in v.numpy().ravel().tolist()]
    return {"losses": losses, "weights": weights}


if __name__ == "__main__":
    main()
