"""T5's pre-training loss: predict the spans that were removed from the input."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from use_st5.losses import Feature, Gather, TaskLoss

_PADDING = 0


@keras.saving.register_keras_serializable(package="experiments")
class SpanCorruptionLoss(TaskLoss):
    """`mean over rows of (1/|t|) Σ_k −log p(t_k | t_{<k}, inputs)`, with teacher forcing.

    The trained model is a whole `use_st5.models.T5`, which replaces the encoder in the
    trainer. The loss has no weights. The decoder reads the start id 0 and the targets without their
    last token (Raffel et al. 2020, sections 2.1 and 3.1.4). All targets of `SpanCorruption` have
    the same length, so the mean over rows equals the mean over tokens.

    It reads "inputs", ids `[batch, length]`, and "targets", ids `[batch, target_length]`.
    """

    features = (Feature("inputs", "ids"), Feature("targets", "token_ids"))
    metric_names = ("accuracy",)

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.built = True  # There are no weights to build, and a T5 has no `dimension`.

    def call(
        self,
        encoder: keras.Model,
        batch: dict[str, Any],
        training: bool = False,
        gather: Gather | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """See `TaskLoss`; each row has its own loss, so nothing is gathered."""
        del gather
        targets = batch["targets"]
        before = ops.pad(targets[:, :-1], [[0, 0], [1, 0]])
        logits = encoder({"encoder_ids": batch["inputs"], "decoder_ids": before}, training=training)
        losses = ops.sparse_categorical_crossentropy(targets, logits, from_logits=True)
        right = ops.cast(ops.argmax(logits, axis=-1), "int32") == ops.cast(targets, "int32")
        tokens = ops.cast(targets != _PADDING, "float32")
        tokens /= ops.maximum(ops.sum(tokens, axis=-1, keepdims=True), 1.0)
        loss, accuracy = (
            ops.mean(ops.sum(ops.cast(each, "float32") * tokens, axis=-1))
            for each in (losses, right)
        )
        return loss, {"accuracy": accuracy}
