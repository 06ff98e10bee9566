"""Texts with labels: classify each text by its vector."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from use_st5.losses.scored_pair_loss import soft_cross_entropy
from use_st5.losses.task_loss import (
    Feature,
    Gather,
    VectorLoss,
    build_stack,
    cross_entropy,
    dense_stack,
)


@keras.saving.register_keras_serializable(package="use_st5")
class LabelLoss(VectorLoss):
    """`−log softmax(W·h + b)[label]`, `h = layers(u)`, `u` the vector of the text.

    This is the loss of the transfer tasks of the USE paper: the encoder's output "is provided to a
    task specific DNN" (section 4.3). Here the encoder is trained too.

    Inputs:
        | feature | kind |
        |---|---|
        | text | ids `[batch, length]` |
        | label | integers `[batch]` in `0 … num_classes − 1` |

    Relations:
        `ClassificationLoss` reads pairs of texts. To fit only a classifier to fixed vectors, use
        scikit-learn with `use_st5.sklearn.SentenceVectors`.

    Examples:
        >>> data = ArrayData({"text": ids, "label": labels})
        >>> task = Task("topics", LabelLoss(num_classes=3), data)
        >>> task.check_features()

    Args:
        num_classes: Number of labels.
        hidden_dims: Widths of the hidden layers; may be empty.
        activation: Keras name of the hidden layers' activation.
        dropout: Dropout rate on the input of every hidden layer and of the output layer.
    """

    metric_names = ("accuracy",)

    def __init__(
        self,
        *,
        num_classes: int,
        hidden_dims: Sequence[int] = (),
        activation: str = "relu",
        dropout: float = 0.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.num_classes = num_classes
        self.hidden_dims = tuple(hidden_dims)
        self.activation = activation
        self.dropout = dropout
        self.hidden_layers = dense_stack(self.hidden_dims, activation)
        self.output_layer = keras.layers.Dense(num_classes, dtype="float32")
        self.dropout_layer = keras.layers.Dropout(dropout, dtype="float32")

    @property
    def features(self) -> tuple[Feature, ...]:
        """The text and the label."""
        return Feature("text", "ids"), Feature("label", "label", size=self.num_classes)

    def build(self, embedding_shape: tuple[int | None, int]) -> None:
        width = build_stack(self.hidden_layers, self.input_width(embedding_shape[-1]))
        self.output_layer.build((None, width))

    def input_width(self, dimension: int) -> int:
        """The width of the head's input, for vectors with this dimension."""
        return dimension

    def head_input(self, vectors: list[Any]) -> Any:
        """The head's input, made from the vectors of a row; float32 `[batch, input_width]`."""
        (vector,) = vectors
        return vector

    def from_vectors(
        self, vectors: list[Any], batch: dict[str, Any], *, training: bool, gather: Gather
    ) -> tuple[Any, dict[str, Any]]:
        x = self.head_input(vectors)
        for layer in self.hidden_layers:
            x = layer(self.dropout_layer(x, training=training))
        logits = self.output_layer(self.dropout_layer(x, training=training))
        return self.cost(logits, batch)

    def cost(self, logits: Any, batch: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """The loss and the metrics of logits `[batch, num_classes]`."""
        return cross_entropy(ops.cast(batch["label"], "int32"), logits)


@keras.saving.register_keras_serializable(package="use_st5")
class MultiLabelLoss(LabelLoss):
    """`−y·log σ(x) − (1 − y)·log(1 − σ(x))`, mean over labels and rows, `x = W·h + b` the logits.

    Binary cross-entropy: a text has any number of labels, and `h` is that of `LabelLoss`. The value
    is that of PyTorch's `BCEWithLogitsLoss`.

    Inputs:
        | feature | kind |
        |---|---|
        | text | ids `[batch, length]` |
        | labels | floats `[batch, num_classes]`: 1 for a label that the text has, else 0 |

    Relations:
        If each text has one label, use `LabelLoss`, whose probabilities sum to 1.

    Examples:
        >>> data = ArrayData({"text": ids, "labels": vectors})
        >>> task = Task("topics", MultiLabelLoss(num_classes=6), data)
        >>> task.check_features()

    Args:
        num_classes: Number of labels; further arguments as in `LabelLoss`.
    """

    @property
    def features(self) -> tuple[Feature, ...]:
        """The text and its labels."""
        return Feature("text", "ids"), Feature("labels", "vector", size=self.num_classes)

    def cost(self, logits: Any, batch: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        labels = ops.cast(batch["labels"], "float32")
        hits = (logits > 0) == (labels > 0.5)
        return soft_cross_entropy(labels, logits), {"accuracy": ops.mean(ops.cast(hits, "float32"))}
