"""Trains a toy encoder with the library's own trainer, for the kills of an experiment."""

from __future__ import annotations

import hashlib
from pathlib import Path

import keras
import numpy as np

from tests.training import toy
from use_st5.io.files import atomic_path
from use_st5.training.tensorflow_step import TensorFlowLoop


def run(data: Path, output: Path, *, seed: int = 0, resume: bool = True) -> dict[str, float]:
    """Trains for 60 steps with a checkpoint every 4, and writes a digest of the weights."""
    keras.utils.set_random_seed(seed)
    encoder = toy.ToyEncoder(dropout=0.2)
    trainer = toy.loop(
        TensorFlowLoop,
        encoder,
        toy.tasks(only=("talk",)),
        keras.optimizers.Adam(1e-2),
        folder=output,
        evaluation_steps=4,
    )
    trainer.run(60)
    digest = hashlib.sha256()
    for variable in encoder.variables:
        digest.update(np.ascontiguousarray(variable.numpy()).tobytes())
    with atomic_path(output / "digest.txt") as temporary:
        temporary.write_text(digest.hexdigest(), encoding="utf-8")
    return {"steps": 60.0}
