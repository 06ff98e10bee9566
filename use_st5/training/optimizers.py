"""Optimizers and the learning rates of the papers' trainings, as Keras schedules."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import keras
from keras import ops

# Biases, and the scale and shift of norms (gamma and beta in Keras's, scale in T5's). Keras
# searches a variable's name for this: `gamma` under JAX, `model/norm/gamma:0` under TensorFlow,
# which puts `/replica_1` before the colon on a second replica.
_WITHOUT_DECAY = r"(^|/)(bias|gamma|beta|scale)(/replica_\d+)?(:\d+)?$"


def clipped(optimizer: keras.optimizers.Optimizer, gradients: list[Any]) -> list[Any]:
    """Clips tensors of TensorFlow by an optimizer's setting (Keras allows one of three).

    Sparse gradients must not have repeated rows if `global_clipnorm` is set.
    """
    import tensorflow as tf

    if norm := optimizer.global_clipnorm:
        return tf.clip_by_global_norm(gradients, norm)[0]
    if norm := optimizer.clipnorm:
        return [tf.clip_by_norm(tf.convert_to_tensor(each), norm) for each in gradients]
    if limit := optimizer.clipvalue:
        return [tf.clip_by_value(tf.convert_to_tensor(each), -limit, limit) for each in gradients]
    return gradients


class OneOperation:
    """Adam's update of a variable as one operation of TensorFlow, which takes sparse gradients."""

    def _clip_gradients(self: Any, grads: list[Any]) -> list[Any]:
        if keras.backend.backend() == "tensorflow":
            return clipped(self, grads)
        return super()._clip_gradients(grads)  # type: ignore[misc]

    def update_step(self: Any, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """Updates a variable and its two moments."""
        if keras.backend.backend() != "tensorflow":
            super().update_step(gradient, variable, learning_rate)  # type: ignore[misc]
            return
        import tensorflow as tf

        gradient = tf.convert_to_tensor(gradient)
        if self.amsgrad:
            super().update_step(gradient, variable, learning_rate)  # type: ignore[misc]
            return
        place, dtype = self._get_variable_index(variable), variable.dtype
        step = tf.cast(self.iterations + 1, dtype)
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=self._momentums[place].value.handle,
            v=self._velocities[place].value.handle,
            beta1_power=tf.pow(tf.cast(self.beta_1, dtype), step),
            beta2_power=tf.pow(tf.cast(self.beta_2, dtype), step),
            lr=tf.cast(learning_rate, dtype),
            beta1=self.beta_1,
            beta2=self.beta_2,
            epsilon=self.epsilon,
            grad=tf.cast(gradient, dtype),
        )


@keras.saving.register_keras_serializable("use_st5")
class Adam(OneOperation, keras.optimizers.Adam):
    """Keras's `Adam`: the same arguments, state and results."""


@keras.saving.register_keras_serializable("use_st5")
class AdamW(OneOperation, keras.optimizers.AdamW):
    """Keras's `AdamW`: the same arguments, state and results."""


def adamw(
    learning_rate: float | keras.optimizers.schedules.LearningRateSchedule,
    *,
    weight_decay: float,
    **options: Any,
) -> keras.optimizers.AdamW:
    """AdamW without decay of biases, and of the scale and shift of norms.

    Every optimizer of the package that decays weights is made here.

    Args:
        learning_rate: A number or a schedule.
        weight_decay: A step subtracts this share of the weight, times the learning rate.
        **options: Further arguments of Keras's `AdamW`, such as `global_clipnorm`.
    """
    optimizer = AdamW(learning_rate, weight_decay=weight_decay, **options)
    optimizer.exclude_from_weight_decay(var_names=[_WITHOUT_DECAY])
    return optimizer


def adam_with_cosine(
    learning_rate: float, *, warmup_steps: int, adam: type[Adam] = Adam
) -> Callable[[int], keras.optimizers.Optimizer]:
    """Adam with linear warm-up and cosine decay to 0; gradients are clipped to the norm 1.

    Args:
        learning_rate: The peak.
        warmup_steps: Steps of the warm-up, at most a tenth of the run.
        adam: The class of the optimizer.

    Returns:
        A function from the number of steps to the optimizer.
    """

    def optimizer(steps: int) -> keras.optimizers.Optimizer:
        warmup = min(warmup_steps, steps // 10)
        schedule = keras.optimizers.schedules.CosineDecay(
            initial_learning_rate=0.0,
            warmup_target=learning_rate,
            warmup_steps=warmup,
            decay_steps=max(1, steps - warmup),
        )
        return adam(schedule, beta_2=0.98, global_clipnorm=1.0)

    return optimizer


@keras.saving.register_keras_serializable(package="use_st5")
class LinearDecay(keras.optimizers.schedules.LearningRateSchedule):
    """A constant learning rate for a share of the steps, then a linear decay to 0.

    "Linear decay is applied after 10% of the total number of training steps, reducing the learning
    rate to 0 by the end of training" (Ni et al. 2021, section 4.3).

    Args:
        learning_rate: The learning rate at the start.
        steps: Steps of the run.
        constant_share: Share of the steps before the learning rate falls, in `[0, 1)`.
    """

    def __init__(self, learning_rate: float, steps: int, *, constant_share: float = 0.1) -> None:
        super().__init__()
        self.learning_rate = learning_rate
        self.steps = steps
        self.constant_share = constant_share

    def __call__(self, step: Any) -> Any:
        """The learning rate of the update that follows `step` updates, float32 scalar."""
        remaining = 1.0 - ops.cast(step, "float32") / self.steps
        return self.learning_rate * ops.clip(remaining / (1.0 - self.constant_share), 0.0, 1.0)

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return dict(vars(self))


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
    """

    def __init__(
        self, learning_rate: float, steps: int, *, warmup_share: float = 0.1, decay: bool = True
    ) -> None:
        super().__init__()
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
        return dict(vars(self))
