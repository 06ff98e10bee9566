"""The head of the masked language model: which word a vector stands for."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from use_st5.models.bert.block import activation_of, dense, layer_norm
from use_st5.models.bert.config import BertConfig


class MaskedWordHead(keras.layers.Layer):
    """A dense layer, gelu and a layer norm, then the token table and a bias for each word.

    Args:
        config: The shape of the model.

    Call arguments:
        vectors: `[..., hidden_dim]`.
        table: The token table, `[vocabulary_size, hidden_dim]`.

    Returns:
        Logits, float32 `[..., vocabulary_size]`.
    """

    def __init__(self, config: BertConfig, **kwargs: Any) -> None:
        super().__init__(autocast=False, **kwargs)
        self.config = config
        self.transform = dense(
            config.hidden_dim,
            "transform",
            activation=activation_of(config),
            dtype=self.dtype_policy,
        )
        self.norm = layer_norm(config, "norm")

    def build(self, _input_shape: Any = None) -> None:
        for layer in (self.transform, self.norm):
            layer.build((None, self.config.hidden_dim))
        self.bias = self.add_weight(
            shape=(self.config.vocabulary_size,),
            initializer="zeros",
            dtype="float32",
            autocast=False,
            name="bias",
        )
        self.built = True

    def call(self, vectors: Any, table: Any) -> Any:
        hidden = ops.cast(self.norm(self.transform(vectors)), self.compute_dtype)
        scores = ops.matmul(hidden, ops.transpose(ops.cast(table, self.compute_dtype)))
        return ops.cast(scores, "float32") + self.bias
