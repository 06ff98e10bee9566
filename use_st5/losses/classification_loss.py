"""Natural language inference: classify pairs of sentences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, get_args

import keras
from keras import ops

from use_st5.losses.label_loss import LabelLoss
from use_st5.losses.task_loss import Feature

Part = Literal["u", "v", "difference", "product"]
_PARTS: dict[Part, Callable[[Any, Any], Any]] = {
    "u": lambda u, v: u,
    "v": lambda u, v: v,
    "difference": lambda u, v: ops.abs(u - v),
    "product": lambda u, v: u * v,
}


@keras.saving.register_keras_serializable(package="use_st5")
class ClassificationLoss(LabelLoss):
    """`−log softmax(W·h + b)[label]`, `h = layers([u; v; |u − v|; u ⊙ v])`.

    This is the supervised task of the USE paper, on SNLI (Bowman et al. 2015). The input of four
    parts is from InferSent (Conneau et al. 2017, section 3.1); `⊙` is the element-wise product. For
    the loss of Sentence-BERT (Reimers and Gurevych 2019, section 3), which has no product and no
    hidden layers, use `parts=("u", "v", "difference"), hidden_dims=()`.

    Inputs:
        | feature | kind |
        |---|---|
        | premise | ids `[batch, length]` |
        | hypothesis | ids `[batch, length]` |
        | label | integers `[batch]` in `0 … num_classes − 1` |

    Relations:
        `ContrastiveLoss` trains the cosines directly. It can use contradictions as hard negatives
        if the same premise also has an entailment.

    Examples:
        >>> data = ArrayData({"premise": ids, "hypothesis": ids, "label": labels})
        >>> task = Task("nli", ClassificationLoss(num_classes=3), data)
        >>> task.check_features()

    Args:
        num_classes: Number of labels.
        parts: The parts of the input, in this order: "u", "v", "difference" (`|u − v|`) and
            "product" (`u ⊙ v`).
        hidden_dims: Widths of the hidden layers; may be empty.
        activation: Keras name of the hidden layers' activation.
        dropout: Dropout rate on the input of every hidden layer and of the output layer.
    """

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
        if not parts or len(set(parts)) != len(parts) or not {*parts} <= {*_PARTS}:
            raise ValueError(f"Expected parts among {[*_PARTS]}, each once, received {[*parts]}.")
        super().__init__(
            num_classes=num_classes,
            hidden_dims=hidden_dims,
            activation=activation,
            dropout=dropout,
            **kwargs,
        )
        self.parts = tuple(parts)

    @property
    def features(self) -> tuple[Feature, ...]:
        """The premise, the hypothesis and the label."""
        return (
            Feature("premise", "ids"),
            Feature("hypothesis", "ids"),
            Feature("label", "label", size=self.num_classes),
        )

    def input_width(self, dimension: int) -> int:
        return len(self.parts) * dimension

    def head_input(self, vectors: list[Any]) -> Any:
        return ops.concatenate([_PARTS[part](*vectors) for part in self.parts], axis=-1)
