"""Losses that know the encoder by its vectors alone."""

from __future__ import annotations

from typing import Any

import keras

from use_st5.losses.task_loss import LOCAL, Gather, TaskLoss, encode_together


class VectorLoss(TaskLoss):
    """Base class: a loss that encodes texts of the batch and then needs nothing but their vectors.

    A subclass says which texts (`texts`) and what to make of their vectors (`from_vectors`). Who
    trains may then encode them otherwise than in one call: piece by piece, say, because the batch
    does not fit into memory (`use_st5.training.piecewise_encoder`).
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
            training: Whether dropout acts in the head.
            gather: Gives the rows of all replicas.
        """
        raise NotImplementedError

    def call(
        self,
        encoder: keras.Model,
        batch: dict[str, Any],
        training: bool = False,
        gather: Gather = LOCAL,
    ) -> tuple[Any, dict[str, Any]]:
        vectors = encode_together(encoder, self.texts(batch), training)
        return self.from_vectors(vectors, batch, training=training, gather=gather)
