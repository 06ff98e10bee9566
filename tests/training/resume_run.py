"""Trains toy tasks in a folder; also run in a fresh process: resume_run.py FOLDER STEPS."""

from __future__ import annotations

import hashlib
import os
import sys
from typing import Any

import keras
import numpy as np

from tests.training import toy
from use_st5.training.optimizers import Adam
from use_st5.training.tensorflow_step import TensorFlowLoop


def trained(folder: str | os.PathLike[str], steps: int) -> dict[str, Any]:
    """Trains two tasks with dropout, Adam and a best checkpoint.

    Returns:
        A digest of all weights, the history, and the first step that this call made.
    """
    keras.utils.set_random_seed(3)
    encoder = toy.ToyEncoder(dropout=0.2)
    schedule = keras.optimizers.schedules.CosineDecay(1e-2, steps)
    optimizer = Adam(schedule)
    trainer = TensorFlowLoop(
        encoder,
        toy.tasks(only=("talk", "nli")),
        optimizer,
        folder=folder,
        steps_per_execution=2,
        checkpoint_every=8,
        evaluate=lambda: {"size": float(np.abs(encoder.table.embeddings.numpy()).sum())},
        evaluate_every=40,
        progress=False,
    )
    history = trainer.run(steps)
    digest = hashlib.sha256()
    for layer in (encoder, optimizer, *(task.loss for task in trainer.tasks.values())):
        for variable in layer.variables:
            digest.update(np.ascontiguousarray(variable.numpy()).tobytes())
    return {
        "digest": digest.hexdigest(),
        "history": history.to_state(),
        "first": history.records[0]["step"] if history.records else None,
    }


if __name__ == "__main__":
    trained(sys.argv[1], int(sys.argv[2]))
