"""A dense layer that can carry a low-rank adapter."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="use_st5")
class LoRADense(keras.layers.Dense):
    """Keras's dense layer, its adapter computed beside the kernel: `x·W + α/r · (x·A)·B`.

    LoRA (Hu et al. 2021, arXiv 2106.09685), section 4.1. `enable_lora` is Keras's own: it makes A
    and B in float32 and freezes W. Keras then computes `x·(W + α/r · A·B)`, which makes a kernel
    anew in every layer, step and gradient, and in bfloat16 rounds away what is smaller than a
    256th of a weight, as the first thousand updates are. This layer does neither, and can merge.

    It makes a matrix of its input itself: for more axes Keras's layer is ten more operations of
    TensorFlow's graph, of which one sentence's time is made.

    Call arguments:
        inputs: `[..., dim]`.

    Returns:
        `[..., units]`.
    """

    # Keras's own; there is a rank where an adapter is enabled.
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
        # A policy "bfloat16" casts nothing by itself, and the adapter is float32.
        a, b = (ops.cast(m, inputs.dtype) for m in (self.lora_kernel_a, self.lora_kernel_b))
        change = ops.matmul(ops.matmul(inputs, a), b) * (self.lora_alpha / self.lora_rank)
        outputs = ops.matmul(inputs, self._kernel) + change
        if self.bias is not None:
            outputs = outputs + self.bias
        return outputs if self.activation is None else self.activation(outputs)

    def merge_lora(self) -> None:
        """Adds the adapter to the kernel, in the kernel's dtype, and removes it.

        The kernel stays frozen; whoever froze the rest of the model decides about both.

        Raises:
            ValueError: There is no adapter.
        """
        if not self.lora_enabled:
            raise ValueError(f"{self.path}: expected a layer with an adapter, this one has none.")
        change = ops.matmul(self.lora_kernel_a, self.lora_kernel_b)
        change = change * (self.lora_alpha / self.lora_rank)
        self._kernel.assign(ops.cast(self._kernel, "float32") + change)
        del self.lora_kernel_a, self.lora_kernel_b
        self.lora_enabled = False
        self.lora_rank = self.lora_alpha = None
