"""Run by tests in a fresh process whose Keras runs on JAX.

usage: jax_run.py INITIAL.npz FINAL.npz; trains every case from the weights in the first file,
writes its weights and losses to the second, and prints as JSON what `resumed` returns. It also
continues the runs that another backend began in the folders "exchanged" and "dropout".
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import keras
import numpy as np

from tests.training.backend_cases import CASES, STEPS, two_tasks, weights
from use_st5.training.jax_loop import JaxLoop


def main(initial: str, final: str) -> None:
    """Runs all cases, and the resumed runs."""
    arrays = dict(np.load(initial))
    results: dict[str, Any] = {}
    for name, case in CASES.items():
        trainer = case(JaxLoop)
        for position, variable in enumerate(trainer._trainable_variables()):
            variable.assign(arrays[f"{name}/{position}"])
        history = trainer.run(STEPS)
        results |= {f"{name}/{i}": array for i, array in enumerate(weights(trainer))}
        results[f"{name}/losses"] = np.array([record["loss"] for record in history.records])
    np.savez(final, **results)
    two_tasks(JaxLoop, folder="exchanged").run(6)
    two_tasks(JaxLoop, dropout=0.3, folder="dropout").run(6)
    sys.stdout.write(json.dumps(resumed()) + "\n")


def resumed() -> dict[str, Any]:
    """Compares a run with dropout that was stopped and continued with one that was not."""
    trainers = []
    for initial, folder, steps in ((5, None, 8), (5, "run", 4), (99, "run", 8)):
        keras.utils.set_random_seed(initial)
        trainer = two_tasks(JaxLoop, dropout=0.3, folder=folder)
        trainer.run(steps)
        trainers.append(trainer)
    whole, _, rest = trainers
    pairs = zip(whole.encoder.variables, rest.encoder.variables, strict=True)
    return {
        "same": all(np.array_equal(a.numpy(), b.numpy()) for a, b in pairs),
        "steps": [record["step"] for record in rest.history.records],
        "files": sorted(path.name for path in Path("run/checkpoint-000000008").iterdir()),
    }


if __name__ == "__main__":
    main(*sys.argv[1:])
