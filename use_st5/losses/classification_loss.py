"""Natural language inference as a task: classify a pair of sentences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, get_args

import keras
from keras import ops

from use_st5.losses.task_loss import Feature, Gather, build_stack, cross_entropy, dense_stack
from use_st5.losses.vector_loss import VectorLoss

Part = Literal["u", "v", "difference", "product"]
_PARTS: dict[Part, Callable[[Any, Any], Any]] = {
    "u": lambda u, v: u,
    "v": lambda u, v: v,
    "difference": lambda u, v: ops.abs(u - v),
    "product": lambda u, v: u * v,
}


@keras.saving.register_keras_serializable(package="use_st5")
class ClassificationLoss(VectorLoss):
    """`−log softmax(W·h + b)[label]`, `h = layers([u; v; |u − v|; u ⊙ v])`.

    The supervised task of the USE paper, on SNLI (Bowman et al. 2015); the four-part input is that
    of InferSent (Conneau et al. 2017, section 3.1), `⊙` the product of each pair of entries.
    Sentence-BERT (Reimers and Gurevych 2019, section 3) leaves the product and the layers out:
    `parts=("u", "v", "difference"), hidden_dims=()`.

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
        parts: Of what `h` is made, in this order: "u", "v", "difference" (`|u − v|`) and "product"
            (`u ⊙ v`).
        hidden_dims: Widths of the hidden layers; may be empty.
        activation: Keras name of the hidden layers' activation.
        dropout: Rate on the input of every hidden layer and of the output, in training.

    Raises:
        ValueError: There is no part, one is unknown, or one is named twice.
    """

    metric_names = ("accuracy",)

    def __init__(
        self,
        *,
        num_classes: int = 3,
        parts: Sequence[Part] = get_args(Part),
        hidden_dims: Sequence[int] = (512,),
        activation: str = "relu",
        dropout: float = 0.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if not parts or len(set(parts)) != len(parts) or not {*parts} <= {*_PARTS}:
            raise ValueError(
                f"Expected parts among {[*_PARTS]}, each once and at least one. "
                f"Received: {[*parts]}"
            )
        self.num_classes = num_classes
        self.parts = tuple(parts)
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
        width = build_stack(self.hidden_layers, len(self.parts) * embedding_shape[-1])
        self.output_layer.build((None, width))

    def texts(self, batch: dict[str, Any]) -> list[Any]:
        return [batch["premise"], batch["hypothesis"]]

    def from_vectors(
        self, vectors: list[Any], batch: dict[str, Any], *, training: bool, gather: Gather
    ) -> tuple[Any, dict[str, Any]]:
        del gather  # Rows do not meet here.
        u, v = vectors
        x = ops.concatenate([_PARTS[part](u, v) for part in self.parts], axis=-1)
        for layer in self.hidden_layers:
            x = layer(self.dropout_layer(x, training=training))
        logits = self.output_layer(self.dropout_layer(x, training=training))
        labels = ops.cast(batch["label"], "int32")
        return cross_entropy(labels, logits)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "num_classes": self.num_classes,
            "parts": self.parts,
            "hidden_dims": self.hidden_dims,
            "activation": self.activation,
            "dropout": self.dropout,
        }
