"""Natural language inference as a task: classify a pair of sentences."""

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
            raise ValueError(
                f"Expected parts among {[*_PARTS]}, each once and at least one. "
                f"Received: {[*parts]}"
            )
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

    def texts(self, batch: dict[str, Any]) -> list[Any]:
        return [batch["premise"], batch["hypothesis"]]

    def input_width(self, dimension: int) -> int:
        return len(self.parts) * dimension

    def head_input(self, vectors: list[Any]) -> Any:
        return ops.concatenate([_PARTS[part](*vectors) for part in self.parts], axis=-1)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "parts": self.parts}
