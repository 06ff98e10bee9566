"""Optimizers by their number of steps, for recipes."""

from __future__ import annotations

from collections.abc import Callable

import keras


def adam_with_cosine(
    learning_rate: float, *, warmup_steps: int
) -> Callable[[int], keras.optimizers.Optimizer]:
    """Adam whose rate rises in a line and falls to 0 by a cosine, gradients clipped to norm 1.

    Args:
        learning_rate: The peak.
        warmup_steps: Steps of the rise, at most a tenth of the run.

    Returns:
        Number of steps → the optimizer.
    """

    def optimizer(steps: int) -> keras.optimizers.Optimizer:
        warmup = min(warmup_steps, steps // 10)
        schedule = keras.optimizers.schedules.CosineDecay(
            initial_learning_rate=0.0,
            warmup_target=learning_rate,
            warmup_steps=warmup,
            decay_steps=max(1, steps - warmup),
        )
        return keras.optimizers.Adam(schedule, beta_2=0.98, global_clipnorm=1.0)

    return optimizer
