"""Conversations: find the response to an input in the batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras

from use_st5.layers.pooling import l2_normalize
from use_st5.losses.contrastive_loss import equal_ids, in_batch_softmax
from use_st5.losses.task_loss import Feature, Gather, VectorLoss, build_stack, dense_stack


@keras.saving.register_keras_serializable(package="use_st5")
class InputResponseLoss(VectorLoss):
    """`−log softmax_j(scale · (uᵢ·vⱼ − margin·[i = j]))[i]`, mean over rows i.

    `u = encoder(input)` and `v = FFN(encoder(response))`, both scaled to length 1. This is the
    conversational input-response task of the USE paper. The response has its own feed-forward
    network, because a response is not a paraphrase of its input (Henderson et al. 2017, section 4;
    Yang et al. 2018, section 3.1). The negatives are the other responses of the batch; with
    `tf.distribute`, of all replicas. A candidate with the same ids as the true response is not a
    negative.

    Inputs:
        | feature | kind |
        |---|---|
        | input | ids `[batch, length]` |
        | response | ids `[batch, length]` |

    Relations:
        For pairs with equal meaning, use `ContrastiveLoss`: it has no response network, but hard
        negatives and both directions.

    Examples:
        >>> data = ArrayData({"input": ids, "response": others})
        >>> task = Task("talk", InputResponseLoss(hidden_dims=(16,)), data)
        >>> task.check_features()

    Args:
        hidden_dims: Widths of the response network's hidden layers. A linear layer to the encoder's
            dimension follows them. Empty: no network, `v = encoder(response)`; use this for pairs
            with equal meaning.
        activation: Keras name of the hidden layers' activation.
        scale: Factor on the cosines, the inverse of the temperature.
        margin: Subtracted from the true response's cosine (additive margin, Yang et al. 2019).
    """

    features = (Feature("input", "ids"), Feature("response", "ids"))
    metric_names = ("accuracy",)

    def __init__(
        self,
        *,
        hidden_dims: Sequence[int] = (512, 512),
        activation: str = "tanh",
        scale: float = 20.0,
        margin: float = 0.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.hidden_dims = tuple(hidden_dims)
        self.activation = activation
        self.scale = scale
        self.margin = margin
        self.hidden_layers = dense_stack(self.hidden_dims, activation)

    def build(self, embedding_shape: tuple[int | None, int]) -> None:
        dimension = embedding_shape[-1]
        width = build_stack(self.hidden_layers, dimension)
        self.output_layer = None
        if self.hidden_layers:
            self.output_layer = keras.layers.Dense(dimension, dtype="float32")
            self.output_layer.build((None, width))

    def from_vectors(
        self, vectors: list[Any], batch: dict[str, Any], *, training: bool, gather: Gather
    ) -> tuple[Any, dict[str, Any]]:
        u, v = vectors
        for layer in self.hidden_layers:
            v = layer(v)
        if self.output_layer is not None:
            v = self.output_layer(v)
        return in_batch_softmax(
            l2_normalize(u),
            gather(l2_normalize(v)),
            equal_ids(batch["response"], gather(batch["response"])),
            scale=self.scale,
            margin=self.margin,
            gather=gather,
        )
