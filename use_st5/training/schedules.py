"""The learning rates of the papers' trainings, as Keras schedules."""

from __future__ import annotations

import math
from typing import Any

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="use_st5")
class LinearDecay(keras.optimizers.schedules.LearningRateSchedule):
    """A constant learning rate for a share of the steps, then a linear decay to 0.

    "Linear decay is applied after 10% of the total number of training steps, reducing the learning
    rate to 0 by the end of training" (Ni et al. 2021, section 4.3).

    Args:
        learning_rate: The learning rate at the start.
        steps: Steps of the run.
        constant_share: Share of the steps before the learning rate falls, in `[0, 1)`.

    Raises:
        ValueError: There is no step, or the share is not in `[0, 1)`.
    """

    def __init__(self, learning_rate: float, steps: int, *, constant_share: float = 0.1) -> None:
        super().__init__()
        if steps < 1 or not 0 <= constant_share < 1:
            raise ValueError(
                "Expected at least one step and a constant share in [0, 1). "
                f"Received: steps={steps}, constant_share={constant_share}"
            )
        self.learning_rate = learning_rate
        self.steps = steps
        self.constant_share = constant_share

    def __call__(self, step: Any) -> Any:
        """The learning rate of the update that follows `step` updates, float32 scalar."""
        remaining = 1.0 - ops.cast(step, "float32") / self.steps
        return self.learning_rate * ops.clip(remaining / (1.0 - self.constant_share), 0.0, 1.0)

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {
            "learning_rate": self.learning_rate,
            "steps": self.steps,
            "constant_share": self.constant_share,
        }


@keras.saving.register_keras_serializable(package="use_st5")
class LinearWarmup(keras.optimizers.schedules.LearningRateSchedule):
    """A linear warm-up for a share of the steps, then a linear decay to 0 or a constant.

    "A linear learning rate warm-up over 10% of the training data" (Reimers and Gurevych 2019,
    section 3.1), after which sentence-transformers' `WarmupLinear` falls linearly to 0 at the last
    step, and DefSent (Tsukagoshi et al. 2021) stays at the peak.

    Args:
        learning_rate: The peak.
        steps: Steps of the run.
        warmup_share: Share of the steps in which the learning rate rises, in `[0, 1)`.
        decay: Whether the learning rate falls after that.

    Raises:
        ValueError: There is no step, or the share is not in `[0, 1)`.
    """

    def __init__(
        self, learning_rate: float, steps: int, *, warmup_share: float = 0.1, decay: bool = True
    ) -> None:
        super().__init__()
        if steps < 1 or not 0 <= warmup_share < 1:
            raise ValueError(
                "Expected at least one step and a warm-up share in [0, 1). "
                f"Received: steps={steps}, warmup_share={warmup_share}"
            )
        self.learning_rate = learning_rate
        self.steps = steps
        self.warmup_share = warmup_share
        self.decay = decay

    def __call__(self, step: Any) -> Any:
        """The learning rate of the update that follows `step` updates, float32 scalar."""
        # The rate of the first step of a warm-up is 0: a training of one step has none.
        warmup = min(math.ceil(self.warmup_share * self.steps), self.steps - 1)
        step = ops.cast(step, "float32")
        share = ops.minimum(step / max(1, warmup), 1.0) if warmup else ops.ones_like(step)
        if self.decay:
            remaining = (self.steps - step) / max(1, self.steps - warmup)
            share = ops.minimum(share, ops.maximum(remaining, 0.0))
        return self.learning_rate * share

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {
            "learning_rate": self.learning_rate,
            "steps": self.steps,
            "warmup_share": self.warmup_share,
            "decay": self.decay,
        }
