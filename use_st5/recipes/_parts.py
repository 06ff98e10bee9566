"""The parts of a recipe that may run on different machines."""

from __future__ import annotations

from typing import Literal

import keras

Part = Literal["prepare", "train", "export"]


def parts_to_run(part: Part | None, parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """The part that was asked for, or all.

    Texts become ids and models SavedModels under TensorFlow; training runs under JAX as well.

    Args:
        part: What was asked for; None: everything.
        parts: Those that the recipe has.

    Raises:
        ValueError: There is no such part, or the backend of Keras cannot run it.
    """
    if part is not None and part not in parts:
        raise ValueError(f"Unknown part: {part!r}. Expected one of {parts}.")
    backend = keras.config.backend()
    if backend not in ("tensorflow", "jax"):
        raise ValueError(
            "Expected Keras's backend to be tensorflow or jax, which alone have a training loop "
            f"here: set KERAS_BACKEND. Received: {backend}"
        )
    if part != "train" and backend != "tensorflow":
        raise ValueError(
            "Expected the part 'train', the only one that runs without TensorFlow: the others "
            "are for a machine that has it, before and after. Received: "
            f"part={part!r} with KERAS_BACKEND={backend}"
        )
    return parts if part is None else (part,)
