"""Run by tests in fresh processes: trains toy tasks in the folder named on the line.

usage: resume_run.py FOLDER STEPS; prints a digest of all weights, and the step it resumed from.
"""

from __future__ import annotations

import hashlib
import json
import sys

import keras
import numpy as np

from tests.training import toy
from use_st5.training.trainer import Trainer


def main(folder: str, steps: int) -> None:
    """Trains two tasks with dropout, Adam and a best checkpoint."""
    keras.utils.set_random_seed(3)
    encoder = toy.ToyEncoder(dropout=0.2)
    schedule = keras.optimizers.schedules.CosineDecay(1e-2, steps)
    optimizer = keras.optimizers.Adam(schedule)
    trainer = Trainer(
        encoder,
        toy.tasks(only=("talk", "nli")),
        optimizer,
        folder=folder,
        steps_per_call=2,
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
    result = {
        "digest": digest.hexdigest(),
        "history": history.to_state(),
        "first": history.records[0]["step"] if history.records else None,
    }
    sys.stdout.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
