"""Natural language inference as a task: classify a pair of sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from use_st5.losses.task_loss import Feature, Gather, build_stack, cross_entropy, dense_stack
from use_st5.losses.vector_loss import VectorLoss


@keras.saving.register_keras_serializable(package="use_st5")
class ClassificationLoss(VectorLoss):
    """`−log softmax(W·h + b)[label]`, `h = layers([u; v; |u − v|; u ⊙ v])`.

    The supervised task of the USE paper, on SNLI (Bowman et al. 2015); the four-part input is that
    of InferSent (Conneau et al. 2017, section 3.1), `⊙` the product of each pair of entries.

    Inputs:
        | feature | kind |
        |---|---|
        | premise | ids `[batch, length]` |
        | hypothesis | ids `[batch, length]` |
        | label | integers `[batch]` in `0 … num_classes − 1` |

    Relations:
        Contradictions that come with an entailment of the same premise can also serve as the hard
        negatives of `ContrastiveLoss`, which shapes the cosines themselves; here a head reads them.

    Example:
        >>> data = ArrayData({"premise": ids, "hypothesis": ids, "label": labels})
        >>> task = Task("nli", ClassificationLoss(num_classes=3), data)
        >>> task.check_features()

    Args:
        num_classes: Number of labels.
        hidden_dims: Widths of the hidden layers; may be empty.
        activation: Keras name of the hidden layers' activation.
        dropout: Rate on the input of every hidden layer and of the output, in training.
    """

    metric_names = ("accuracy",)

    def __init__(
        self,
        *,
        num_classes: int = 3,
        hidden_dims: Sequence[int] = (512,),
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
        """The premise, the hypothesis and the label."""
        return (
            Feature("premise", "ids"),
            Feature("hypothesis", "ids"),
            Feature("label", "label", size=self.num_classes),
        )

    def build(self, embedding_shape: tuple[int | None, int]) -> None:
        width = build_stack(self.hidden_layers, 4 * embedding_shape[-1])
        self.output_layer.build((None, width))

    def texts(self, batch: dict[str, Any]) -> list[Any]:
        return [batch["premise"], batch["hypothesis"]]

    def from_vectors(
        self, vectors: list[Any], batch: dict[str, Any], *, training: bool, gather: Gather
    ) -> tuple[Any, dict[str, Any]]:
        del gather  # Rows do not meet here.
        u, v = vectors
        x = ops.concatenate([u, v, ops.abs(u - v), u * v], axis=-1)
        for layer in self.hidden_layers:
            x = layer(self.dropout_layer(x, training=training))
        logits = self.output_layer(self.dropout_layer(x, training=training))
        labels = ops.cast(batch["label"], "int32")
        return cross_entropy(labels, logits)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "num_classes": self.num_classes,
            "hidden_dims": self.hidden_dims,
            "activation": self.activation,
            "dropout": self.dropout,
        }
