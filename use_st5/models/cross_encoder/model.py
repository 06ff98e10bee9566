"""One score for a pair of texts, from an encoder that reads both together."""

from __future__ import annotations

from typing import Any

import keras

from use_st5.layers.random_normal import RandomNormal

# The value that transformers uses for layers that a checkpoint lacks.
_STDDEV = 0.02


@keras.saving.register_keras_serializable(package="use_st5")
class CrossEncoderModel(keras.Model):
    """`W₂·tanh(W₁·x + b₁) + b₂`, where `x` is the encoder's vector for both texts in one row.

    The head is that of BERT for the classification of sentence pairs (Devlin et al. 2019, section
    4.1, and the pooler of its code), with one output, as in Trans-Encoder (Liu et al. 2022,
    arXiv 2109.13059, section 2.2). `σ` of the number is the pair's score.

    As in transformers, `W₁` and `b₁` start with the weights of the pooler in the BERT's checkpoint,
    if it has one (`encoder.pooler`). For a RoBERTa, and for encoders that were created here, they
    start at random, and `W₂` always does: a normal distribution with the standard deviation 0.02,
    and biases of 0.

    Args:
        encoder: A built encoder of any family whose tokenizer has `padded_pairs`; its vector is
            usually the first token's output.
        dropout: Rate on the input of the last layer, in training.

    Call arguments:
        ids: int32 `[batch, length]`, 0 = padding: `[CLS] A [SEP] B [SEP]`.
        training: Whether dropout acts.

    Returns:
        float32 `[batch, 1]`, logits.
    """

    dimension = 1

    def __init__(self, encoder: keras.Model, *, dropout: float = 0.1, **kwargs: Any) -> None:
        super().__init__(**{"dtype": "float32", **kwargs})  # The encoder has its own.
        self.encoder = encoder
        self.dropout = dropout
        self.hidden = _dense(encoder.dimension, "hidden", activation="tanh")
        self.dropout_layer = keras.layers.Dropout(dropout, dtype="float32")
        self.logit = _dense(1, "logit")

    def build(self, _input_shape: Any = None) -> None:
        if not self.encoder.built:
            self.encoder.build()
        for layer in (self.hidden, self.logit):
            layer.build((None, self.encoder.dimension))
        pooler = getattr(self.encoder, "pooler", None)
        if pooler is not None and pooler.kernel.shape == tuple(self.hidden.kernel.shape):
            self.hidden.set_weights([pooler.kernel, pooler.bias])
        self.built = True

    def call(self, ids: Any, training: bool = False) -> Any:
        return self.score(self.encoder(ids, training=training), training=training)

    def score(self, vectors: Any, *, training: bool = False) -> Any:
        """The layers after the encoder.

        Args:
            vectors: float32 `[batch, the encoder's dimension]`.
            training: Whether dropout acts.

        Returns:
            float32 `[batch, 1]`.
        """
        return self.logit(self.dropout_layer(self.hidden(vectors), training=training))

    @property
    def head_variables(self) -> list[keras.Variable]:
        """The variables of the head, in the order of `variables`."""
        return [
            variable
            for layer in (self.hidden, self.dropout_layer, self.logit)
            for variable in layer.variables
        ]

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "encoder": keras.saving.serialize_keras_object(self.encoder),
            "dropout": self.dropout,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> CrossEncoderModel:
        encoder = keras.saving.deserialize_keras_object(config.pop("encoder"))
        return cls(encoder, **config)


def _dense(units: int, name: str, *, activation: str | None = None) -> keras.layers.Dense:
    return keras.layers.Dense(
        units,
        activation=activation,
        kernel_initializer=RandomNormal(stddev=_STDDEV),
        dtype="float32",
        name=name,
    )
