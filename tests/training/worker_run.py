"""A toy training that is killed and started again: worker_run.py STRATEGY FOLDER STEPS.

Prints a digest of all weights and the history, as JSON. The batches lie in the folder beside the
checkpoints.
"""

from __future__ import annotations

import hashlib
import json
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


def main(name: str, folder: str, steps: int) -> dict[str, Any]:
    """Trains two tasks with a checkpoint every eight steps."""
    strategy = strategy_by_name(name)
    keras.utils.set_random_seed(3)
    with strategy.scope():
        encoder = toy.ToyEncoder()
        optimizer = Adam(keras.optimizers.schedules.CosineDecay(1e-2, steps))
    trainer = TensorFlowLoop(
        encoder,
        toy.tasks(only=("talk", "nli")),
        optimizer,
        strategy=strategy,
        folder=folder,
        batch_files=Path(folder, "batches"),
        steps_per_execution=2,
        checkpoint_every=8,
        progress=False,
    )
    history = trainer.run(steps)
    digest = hashlib.sha256()
    for layer in (encoder, optimizer, *(task.loss for task in trainer.tasks.values())):
        for variable in layer.variables:
            value = tf.convert_to_tensor(variable.value).numpy()
            digest.update(np.ascontiguousarray(value).tobytes())
    first = history.records[0]["step"] if history.records else None
    return {"digest": digest.hexdigest(), "history": history.to_state(), "first": first}


if __name__ == "__main__":
    result = main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
    sys.stdout.write(json.dumps(result) + "\n")
