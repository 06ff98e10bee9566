"""Encodes a batch in pieces, in the memory of one piece (GradCache)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from use_st5.losses.task_loss import encode_together


class PiecewiseEncoder:
    """Encodes a batch in pieces, and computes the gradients of the weights in the same pieces.

    GradCache (Gao et al. 2021, section 3): the vectors of all pieces are computed without keeping
    what a gradient needs. The loss is that of the whole batch. Then each piece is encoded once
    more, with the same dropout, and the gradients of its vectors are propagated to the weights.
    This takes one more forward pass, keeps the activations of only one piece, and gives the same
    gradients.

    The pieces are iterations of a loop: if it were unrolled, XLA would see that the second encoding
    repeats the first, and would keep the first. The encoder's only state must be that of its
    `SeedGenerator`s: both loops begin with the same state, and the second ends with the state that
    a single loop would leave.

    Args:
        encoder: Model `ids [batch, length] → [batch, dimension]`, built.
        pieces: The number of pieces, which divides the number of rows.
    """

    def __init__(self, encoder: keras.Model, pieces: int) -> None:
        self.encoder = encoder
        self.pieces = pieces
        self._weights = encoder.trainable_variables
        weights = {id(weight) for weight in encoder.weights}
        self._seeds = [variable for variable in encoder.variables if id(variable) not in weights]

    def __call__(self, texts: list[tf.Tensor]) -> list[tf.Tensor]:
        """The vectors of ids `[rows, length]` in training, without gradients of the weights."""
        parts = [self._cut(ids) for ids in texts]
        shape = [len(texts), parts[0].shape[1], self.encoder.dimension]

        def encode(
            piece: tf.Tensor, seeds: list[tf.Tensor], vectors: tf.TensorArray
        ) -> tuple[tf.Tensor, list[tf.Tensor], tf.TensorArray]:
            encoded, seeds = self._encode(parts, piece, seeds)
            return piece + 1, seeds, vectors.write(piece, encoded)

        vectors = self._loop(encode, tf.TensorArray(tf.float32, self.pieces, element_shape=shape))
        by_text = tf.unstack(vectors[1].stack(), axis=1)
        return [tf.reshape(each, [-1, self.encoder.dimension]) for each in by_text]

    def gradients(
        self, texts: list[tf.Tensor], vector_gradients: list[tf.Tensor]
    ) -> list[tf.Tensor | None]:
        """Encodes the batch once more, this time for its gradients.

        Args:
            texts: The texts as they were encoded.
            vector_gradients: The gradients of the loss with respect to each of the vectors.

        Returns:
            The gradient with respect to each trainable variable of the encoder, dense; None for
            a variable that the vectors do not depend on.
        """
        parts = [self._cut(ids) for ids in texts]
        upstream = tf.stack([self._cut(gradient) for gradient in vector_gradients], axis=1)
        has_gradient = [False] * len(self._weights)  # Known once the loop's body has been traced.

        def back(
            piece: tf.Tensor, seeds: list[tf.Tensor], sums: list[tf.Tensor]
        ) -> tuple[tf.Tensor, list[tf.Tensor], list[tf.Tensor]]:
            with tf.GradientTape() as tape:
                encoded, seeds = self._encode(parts, piece, seeds)
            values = [weight.value for weight in self._weights]
            gradients = tape.gradient(encoded, values, output_gradients=upstream[piece])
            has_gradient[:] = [gradient is not None for gradient in gradients]
            # Dense before it is added: see TrainStep.
            sums = [
                total if gradient is None else total + tf.convert_to_tensor(gradient)
                for total, gradient in zip(sums, gradients, strict=True)
            ]
            return piece + 1, seeds, sums

        zeros = [tf.zeros(weight.shape, weight.dtype) for weight in self._weights]
        seeds, sums = self._loop(back, zeros)
        for variable, value in zip(self._seeds, seeds, strict=True):
            variable.assign(value)
        return [total if is_one else None for total, is_one in zip(sums, has_gradient, strict=True)]

    def _encode(
        self, parts: list[tf.Tensor], piece: tf.Tensor, seeds: list[tf.Tensor]
    ) -> tuple[tf.Tensor, list[tf.Tensor]]:
        """Encodes a piece from seed states: `[texts, rows, dimension]`, and the next states."""
        with keras.StatelessScope(list(zip(self._seeds, seeds, strict=True))) as scope:
            vectors = encode_together(self.encoder, [part[piece] for part in parts], training=True)
        return tf.stack(vectors), [scope.get_current_value(seed) for seed in self._seeds]

    def _loop(self, body: Callable[..., Any], value: Any) -> tuple[list[tf.Tensor], Any]:
        """Runs `(piece, seeds, value) → …` over the pieces; returns the last seeds and value."""
        seeds = [tf.convert_to_tensor(seed.value) for seed in self._seeds]
        _, seeds, value = tf.while_loop(
            lambda piece, *_: piece < self.pieces,
            body,
            (tf.constant(0), seeds, value),
            parallel_iterations=1,
            maximum_iterations=self.pieces,
        )
        return seeds, value

    def _cut(self, rows: tf.Tensor) -> tf.Tensor:
        """`[rows, …]` → `[pieces, rows / pieces, …]`."""
        # Widths may be known only when the step runs.
        widths = keras.ops.shape(rows)[1:]
        return tf.reshape(rows, [self.pieces, rows.shape[0] // self.pieces, *widths])
