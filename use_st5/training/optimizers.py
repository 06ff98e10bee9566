"""Optimizers for a number of steps, and AdamW without decay of biases and norms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras

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
    """Adam's update of a variable as one operation of TensorFlow, instead of Keras's 40.

    TensorFlow also clips the gradients, because it takes sparse ones.
    """

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
