"""A dense layer with optional LoRA."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="use_st5")
class LoRADense(keras.layers.Dense):
    """A dense layer that computes LoRA separately from the kernel: `x·W + α/r · (x·A)·B`.

    LoRA (Hu et al. 2021, arXiv 2106.09685), section 4.1. `enable_lora` is the method of Keras: it
    creates A and B in float32 and freezes W. Keras then computes `x·(W + α/r · A·B)`. This builds a
    new kernel in every layer, step and gradient. In bfloat16 it also rounds away changes below a
    256th of a weight, such as the first thousand updates. This layer avoids both, and can merge A
    and B into W.

    It reshapes its input to a matrix. For inputs with more axes, Keras's layer would add ten more
    operations to TensorFlow's graph, which take most of the time for a single sentence.

    Call arguments:
        inputs: `[..., dim]`.

    Returns:
        `[..., units]`.
    """

    # Attributes of Keras; `lora_rank` is set if LoRA is enabled.
    lora_enabled: bool
    lora_rank: Any
    lora_alpha: Any

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        if len(inputs.shape) <= 2:
            return self._of_matrix(inputs, training)
        *outer, width = ops.shape(inputs)
        outputs = self._of_matrix(ops.reshape(inputs, (-1, width)), training)
        return ops.reshape(outputs, (*outer, self.units))

    def _of_matrix(self, inputs: Any, training: bool | None) -> Any:
        if not self.lora_enabled:
            return super().call(inputs, training=training)
        # The policy "bfloat16" casts no weights, and A and B are float32.
        a, b = (ops.cast(m, inputs.dtype) for m in (self.lora_kernel_a, self.lora_kernel_b))
        change = ops.matmul(ops.matmul(inputs, a), b) * (self.lora_alpha / self.lora_rank)
        outputs = ops.matmul(inputs, self._kernel) + change
        if self.bias is not None:
            outputs = outputs + self.bias
        return outputs if self.activation is None else self.activation(outputs)

    def merge_lora(self) -> None:
        """Adds `α/r · A·B` to the kernel, in the kernel's dtype, and removes A and B.

        The kernel stays frozen. The code that froze the model decides whether to unfreeze it.
        """
        change = ops.matmul(self.lora_kernel_a, self.lora_kernel_b)
        change = change * (self.lora_alpha / self.lora_rank)
        self._kernel.assign(ops.cast(self._kernel, "float32") + change)
        del self.lora_kernel_a, self.lora_kernel_b
        self.lora_enabled = False
        self.lora_rank = self.lora_alpha = None
