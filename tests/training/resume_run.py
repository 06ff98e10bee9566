"""A toy training that is killed and started again: resume_run.py FOLDER STEPS [STRATEGY]."""

from __future__ import annotations

import hashlib
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
    folder: str | os.PathLike[str], steps: int, strategy: str | None = None
) -> dict[str, Any]:
    """Trains two tasks with Adam, and a checkpoint every eight steps.

    In one process there are dropout and a best checkpoint; with a strategy, the batches lie in the
    folder beside the checkpoints.

    Returns:
        A digest of all weights, the history, and the first step that this call made.
    """
    place = tf.distribute.get_strategy() if strategy is None else strategy_by_name(strategy)
    keras.utils.set_random_seed(3)
    with place.scope():
        encoder = toy.ToyEncoder(dropout=0.0 if strategy else 0.2)
        optimizer = Adam(keras.optimizers.schedules.CosineDecay(1e-2, steps))

    def size() -> dict[str, float]:
        return {"size": float(np.abs(encoder.table.embeddings.numpy()).sum())}

    options: dict[str, Any] = {"evaluate": size}
    if strategy:
        options = {"batch_files": Path(folder, "batches")}
    trainer = toy.loop(
        TensorFlowLoop,
        encoder,
        toy.tasks(only=("talk", "nli")),
        optimizer,
        strategy=place,
        folder=folder,
        jit_compile=not strategy,
        evaluation_steps=8,
        **options,
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
    result = trained(sys.argv[1], int(sys.argv[2]), *sys.argv[3:])
    sys.stdout.write(json.dumps(result) + "\n")
