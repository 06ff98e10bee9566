"""The base classes of all losses, and the columns that a loss reads."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import math
from typing import Any, Self

import keras
import numpy as np
from keras import ops

from use_st5.data.arrays import COLUMN_AXES, FLOAT_KINDS, TEXT_KINDS, KindName


@dataclasses.dataclass(frozen=True)
class Feature:
    """A column of a batch that a loss reads; the trainer checks it against the data.

    Attributes:
        name: Key in the batch.
        kind: `"ids"`: integers `[batch, length]`, 0 = padding; `"label"`: integers `[batch]`;
            `"score"`: floats `[batch]`; `"vector"`: floats `[batch, size]`.
        size: The number of classes of a label, or the width of a vector; None: any size.
    """

    name: str
    kind: KindName
    size: int | None = None

    @property
    def is_text(self) -> bool:
        """Whether the column contains ids, which a tokenizer makes from texts."""
        return self.kind in TEXT_KINDS

    def __str__(self) -> str:
        classes, shape = "", ", ".join(COLUMN_AXES[self.kind])
        if self.size and self.kind == "label":
            classes = f" in 0…{self.size - 1}"
        elif self.size:
            shape = shape.replace("width", str(self.size))
        numbers = "floats" if self.kind in FLOAT_KINDS else "integers"
        return f"{self.name}: {numbers} [{shape}]{classes}"

    def problem(self, array: np.ndarray | None) -> str | None:
        """Describes what is wrong with the data's column of this name; None if it is correct."""
        if array is None:
            return f"'{self.name}' is missing"
        rank = len(COLUMN_AXES[self.kind])
        if array.ndim != rank:
            return f"'{self.name}' has rank {array.ndim} instead of {rank}"
        if array.dtype.kind not in ("f" if self.kind in FLOAT_KINDS else "iu"):
            return f"'{self.name}' holds {array.dtype}"
        if self.size is not None and self.kind == "vector" and array.shape[1] != self.size:
            return f"'{self.name}' is {array.shape[1]} wide instead of {self.size}"
        if self.size is not None and self.kind == "label":
            low, high = int(array.min()), int(array.max())
            if low < 0 or high >= self.size:
                return f"'{self.name}' holds labels {low}…{high}, the classes are {self.size}"
        return None


class Gather:
    """Gathers the rows of all replicas; this class is for one replica and returns its input.

    A loss whose candidates are the rows of the batch calls `gather(rows)` to get the rows of all
    replicas. `use_st5.training.strategies.ReplicaGather` does this with `tf.distribute`.
    """

    def __call__(self, rows: Any) -> Any:
        """The rows of all replicas in replica order, `[rows, …]` → `[replicas · rows, …]`."""
        return rows

    def first_row(self, rows: Any) -> Any:
        """The index of this replica's first row in the gathered rows (`rows`: its row count)."""
        return 0


LOCAL = Gather()


class TaskLoss(keras.layers.Layer):
    """Base class: a loss over a batch of ids, with the layers that only its task needs.

    A subclass lists its `features` and its `metric_names`, creates the weights of its head in
    `build(embedding_shape)`, and computes `call(encoder, batch, training, gather) -> (loss,
    metrics)` in float32. The loss must be a mean over the rows of the batch. Then micro-batches,
    several replicas and one large batch give the same result.

    Call arguments:
        encoder: A model `ids [batch, length] → [batch, dimension]` with an attribute `dimension`.
        batch: The features by name.
        training: Whether to apply dropout in the encoder and in the head.
        gather: Returns the rows of all replicas (see `Gather`).

    Returns:
        The loss, a float32 scalar, and a dict of float32 scalars with the keys `metric_names`.
    """

    def __init__(self, **kwargs: Any) -> None:
        # Always float32: softmaxes and norms are too inaccurate in half precision.
        super().__init__(**{"dtype": "float32", **kwargs})

    @property
    def features(self) -> tuple[Feature, ...]:
        """The columns that the loss reads from the batch."""
        return ()

    @property
    def metric_names(self) -> tuple[str, ...]:
        """The keys of the metrics, in the order of the log."""
        return ()

    @property
    def least_score(self) -> float:
        """The lowest score that the loss can learn."""
        return -math.inf

    def check_encoder(self, encoder: keras.Model) -> None:
        """Raises a ValueError if the encoder lacks what the loss needs; by default only vectors."""

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Makes the loss again; Keras's own configuration has more than a constructor may take."""
        parameters = inspect.signature(cls).parameters
        if not any(each.kind is each.VAR_KEYWORD for each in parameters.values()):
            config = {name: value for name, value in config.items() if name in parameters}
        return super().from_config(config)

    def __call__(
        self,
        encoder: keras.Model,
        batch: dict[str, Any],
        *,
        training: bool = False,
        gather: Gather = LOCAL,
    ) -> tuple[Any, dict[str, Any]]:
        """Builds the head in the first call, then runs `call` (see the class)."""
        if not self.built:
            self.build((None, encoder.dimension))
        # By keyword: Keras takes only tensors as positional arguments.
        return super().__call__(encoder=encoder, batch=batch, training=training, gather=gather)


def encode_together(encoder: keras.Model, ids: list[Any], training: bool) -> list[Any]:
    """Float32 vectors of several id arrays in one call: only one gradient of the large table."""
    vectors = encoder(stack_ids(ids), training=training)
    return ops.split(ops.cast(vectors, "float32"), len(ids), axis=0)


def stack_ids(ids: list[Any]) -> Any:
    """Concatenates id arrays `[batch, length]`, padded with 0 to the longest length."""
    # Integers, or tensors if the batches have several lengths.
    lengths = [ops.shape(array)[1] for array in ids]
    is_static = all(isinstance(length, int) for length in lengths)
    longest = max(lengths) if is_static else functools.reduce(ops.maximum, lengths)
    padded = [
        ops.pad(array, [[0, 0], [0, longest - length]])
        for array, length in zip(ids, lengths, strict=True)
    ]
    return ops.concatenate(padded, axis=0)


def dense_stack(widths: tuple[int, ...], activation: str) -> list[keras.layers.Dense]:
    """Float32 dense layers with these widths and this activation."""
    return [keras.layers.Dense(width, activation=activation, dtype="float32") for width in widths]


def build_stack(layers: list[keras.layers.Dense], width: int) -> int:
    """Builds successive dense layers for inputs of `width`; returns the last width."""
    for layer in layers:
        layer.build((None, width))
        width = layer.units
    return width


def cross_entropy(labels: Any, logits: Any) -> tuple[Any, dict[str, Any]]:
    """Mean cross-entropy and accuracy of int32 labels `[batch]`, logits `[batch, classes]`."""
    losses = ops.sparse_categorical_crossentropy(labels, logits, from_logits=True)
    hits = ops.cast(ops.argmax(logits, axis=-1), "int32") == labels
    return ops.mean(losses), {"accuracy": ops.mean(ops.cast(hits, "float32"))}


class VectorLoss(TaskLoss):
    """Base class: a loss that needs nothing from the encoder but the vectors of texts.

    A subclass computes the loss from the vectors of a batch's texts (`from_vectors`); by default
    these are its features of the kind "ids", in their order (`texts`). So the trainer can encode
    the texts in several pieces if the batch does not fit into memory
    (`use_st5.training.tensorflow_step`).
    """

    def texts(self, batch: dict[str, Any]) -> list[Any]:
        """The id arrays to encode, each `[batch, length]`; the lengths may differ."""
        return [batch[feature.name] for feature in self.features if feature.kind == "ids"]

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
