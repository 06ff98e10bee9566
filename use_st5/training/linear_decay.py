"""The learning rate of Sentence-T5's training."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="use_st5")
class LinearDecay(keras.optimizers.schedules.LearningRateSchedule):
    """A constant rate for a share of the steps, then a straight line to 0 at the last.

    "Linear decay is applied after 10% of the total number of training steps, reducing the learning
    rate to 0 by the end of training" (Ni et al. 2021, section 4.3).

    Args:
        learning_rate: The rate at the start.
        steps: Steps of the run.
        constant_share: Share of the steps before the rate falls, in `[0, 1)`.

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
        """The rate of the update after `step` others, float32 scalar."""
        left = 1.0 - ops.cast(step, "float32") / self.steps
        return self.learning_rate * ops.clip(left / (1.0 - self.constant_share), 0.0, 1.0)

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {
            "learning_rate": self.learning_rate,
            "steps": self.steps,
            "constant_share": self.constant_share,
        }
