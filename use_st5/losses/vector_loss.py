"""Base class of the losses that need only the vectors of the encoder."""

from __future__ import annotations

from typing import Any

import keras

from use_st5.losses.task_loss import Gather, TaskLoss, encode_together


class VectorLoss(TaskLoss):
    """Base class: a loss that needs nothing from the encoder but the vectors of texts.

    A subclass returns the texts of a batch (`texts`) and computes the loss from their vectors
    (`from_vectors`). So the trainer can encode the texts in several pieces if the batch does not
    fit into memory (`use_st5.training.tensorflow_step`).
    """

    def texts(self, batch: dict[str, Any]) -> list[Any]:
        """The id arrays to encode, each `[batch, length]`; the lengths may differ."""
        raise NotImplementedError

    def from_vectors(
        self, vectors: list[Any], batch: dict[str, Any], *, training: bool, gather: Gather
    ) -> tuple[Any, dict[str, Any]]:
        """The loss and the metrics (see `TaskLoss`).

        Args:
            vectors: float32 `[batch, dimension]` for each array of `texts`.
            batch: The features by name.
            training: Whether to apply dropout in the head.
            gather: Returns the rows of all replicas.
        """
        raise NotImplementedError

    def call(
        self, encoder: keras.Model, batch: dict[str, Any], training: bool, gather: Gather
    ) -> tuple[Any, dict[str, Any]]:
        vectors = encode_together(encoder, self.texts(batch), training)
        return self.from_vectors(vectors, batch, training=training, gather=gather)
