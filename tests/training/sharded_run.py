"""Run by tests in a fresh process whose JAX sees eight devices; imports no TensorFlow.

Trains the same cases on one device, one of them with the batch split over eight, and all on a mesh
of two by four. Prints as JSON, for each case and layout, how far the weights are from those of one
device, how much they moved, and which share of the weights' bytes the first device holds. It also
prints the ratio of a step's memory in four pieces to that in one, with the batch split over eight.
"""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace
from typing import Any

import jax
import keras
import numpy as np

from benchmarks.sharded_memory import compiled
from tests.training.backend_cases import CASES, STEPS, weights
from use_st5.data.arrays import check_shared
from use_st5.training.jax_loop import JaxLoop, parts_of_batch, sharded

LAYOUTS = {"data": 1, "model": 4}
NAMES = ("cached_decoder", "cached_bert", "span_corruption")


def main() -> None:
    """Runs all cases in all layouts."""
    found: dict[str, Any] = {"devices": len(jax.devices())}
    for name in NAMES:
        initial, alone, _ = trained(name, None)
        moved = max(np.abs(a - b).max() for a, b in zip(initial, alone, strict=True))
        for layout, model in LAYOUTS.items():
            if layout == "data" and name != NAMES[0]:  # It cuts no weights.
                continue
            _, cut, share = trained(name, sharded(model=model), initial)
            apart = max(np.abs(a - b).max() for a, b in zip(alone, cut, strict=True))
            found[f"{name}/{layout}"] = {
                "apart": float(apart), "moved": float(moved), "share": share,
            }  # fmt: skip
    found["refused"] = refusals()
    found["memory"] = temporaries(pieces=4) / temporaries(pieces=1)
    sys.stdout.write(json.dumps(found) + "\n")


def trained(
    name: str, distribution: Any, initial: list[np.ndarray] | None = None
) -> tuple[list[np.ndarray], list[np.ndarray], float]:
    """The weights before and after, and the share of their bytes on the first device."""
    keras.distribution.set_distribution(distribution)
    keras.utils.set_random_seed(0)
    trainer = CASES[name](JaxLoop)
    variables = trainer._trainable_variables()
    for variable, array in zip(variables, initial or [], strict=False):
        variable.assign(array)
    before = weights(trainer)
    trainer.run(STEPS)
    held = sum(variable.value.addressable_shards[0].data.nbytes for variable in variables)
    share = held / sum(variable.value.nbytes for variable in variables)
    programs = [step._compiled._cache_size() for step in trainer._steps.values()]
    assert set(programs) == {1}, f"compiled {programs} times"
    return before, weights(trainer), share


def temporaries(pieces: int) -> int:
    """Bytes on a device for a step of a small Sentence-T5, without weights and batch."""
    shape = {"preset": "t5_mini_en", "batch": 1024, "length": 32, "dtype": "float32"}
    step = compiled(SimpleNamespace(**shape, model=1, lora=0, pieces=pieces))
    return step.memory_analysis().temp_size_in_bytes


def refusals() -> list[str]:
    """The messages about numbers that do not fit the devices."""
    said = []
    try:
        sharded(model=3)
    except ValueError as error:
        said.append(str(error))
    keras.distribution.set_distribution(sharded())
    try:
        check_shared(12, devices=parts_of_batch())
    except ValueError as error:
        said.append(str(error))
    return said


if __name__ == "__main__":
    main()
