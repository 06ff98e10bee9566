"""T5: encoder and decoder over one table of tokens."""

from __future__ import annotations

import dataclasses
from typing import Any

import keras
from keras import ops

from use_st5.layers.random_normal import RandomNormal
from use_st5.models.t5.config import T5_PRESETS, T5Config
from use_st5.models.t5.stack import T5Stack

PADDING_ID = 0  # also what the decoder starts from


@keras.saving.register_keras_serializable(package="use_st5")
class T5(keras.Model):
    """The text-to-text Transformer (Raffel et al. 2020), versions 1.0 and 1.1, and mT5.

    The layout is that of `t5x/examples/t5/network.py`: RMS norms before each part, no biases, one
    relative position bias in a stack, embeddings not scaled.

    Args:
        config: The model's shape; `T5.from_preset` knows the published ones.
        with_decoder: Whether there is a decoder. Without it the model is an encoder alone, and
            `call` gives its output.

    Call arguments:
        inputs: {"encoder_ids", "decoder_ids"}: int32 `[batch, length]`, 0 = padding; the decoder's
            begin with 0. "encoder_ids" alone for an encoder.
        training: Whether dropout acts.

    Returns:
        Logits, float32 `[batch, decoder_length, vocabulary_size]`; of an encoder its output,
        `[batch, length, hidden_dim]`.

    Raises:
        ValueError: The dtype is float16.
    """

    def __init__(self, config: T5Config, *, with_decoder: bool = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        check_dtype(self.dtype_policy)
        self.config = config
        self.with_decoder = with_decoder
        policy = self.dtype_policy
        self.embedding = make_embedding(config, dtype=policy)
        self.encoder = make_stack(config, decoder=False, dtype=policy)
        self.decoder = make_stack(config, decoder=True, dtype=policy) if with_decoder else None
        untied = with_decoder and not config.tied_softmax
        self.logits = (
            keras.layers.Dense(
                config.vocabulary_size,
                use_bias=False,
                kernel_initializer=RandomNormal(stddev=config.hidden_dim**-0.5),
                dtype=policy,
                name="logits",
            )
            if untied
            else None
        )

    @classmethod
    def from_preset(cls, name: str, *, with_decoder: bool = True, **changes: Any) -> T5:
        """A freshly initialised model of a published shape.

        Args:
            name: A key of `T5_PRESETS`.
            with_decoder: Whether there is a decoder.
            **changes: Fields of `T5Config` that differ from the preset's.

        Raises:
            ValueError: The preset is unknown.
        """
        return cls(t5_config(name, **changes), with_decoder=with_decoder)

    def build(self, _input_shape: Any = None) -> None:
        self.embedding.build((None, None))
        for layer in (self.encoder, self.decoder, self.logits):
            if layer is not None:
                layer.build((None, None, self.config.hidden_dim))
        self.built = True

    def call(self, inputs: dict[str, Any], training: bool = False) -> Any:
        tokens = ops.not_equal(inputs["encoder_ids"], PADDING_ID)
        encoded = self.encoder(
            self.embedding(inputs["encoder_ids"]), tokens=tokens, training=training
        )
        if self.decoder is None:
            return encoded
        decoded = self.decoder(
            self.embedding(inputs["decoder_ids"]),
            context=encoded,
            context_tokens=tokens,
            training=training,
        )
        if self.config.scaled_softmax:
            decoded = decoded * self.config.hidden_dim**-0.5
        if self.logits is not None:
            return ops.cast(self.logits(decoded), "float32")
        table = ops.cast(self.embedding.embeddings, decoded.dtype)
        return ops.cast(ops.matmul(decoded, ops.transpose(table)), "float32")

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "config": dataclasses.asdict(self.config),
            "with_decoder": self.with_decoder,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> T5:
        return cls(T5Config(**config.pop("config")), **config)


def make_embedding(config: T5Config, *, dtype: Any) -> keras.layers.Embedding:
    """The table of tokens of a shape; what it gives is not scaled."""
    return keras.layers.Embedding(
        config.vocabulary_size,
        config.hidden_dim,
        embeddings_initializer=RandomNormal(stddev=1.0),
        dtype=dtype,
        name="embedding",
    )


def make_stack(config: T5Config, *, decoder: bool, dtype: Any) -> T5Stack:
    """The encoder or the decoder of a shape."""
    return T5Stack(
        config.decoder_layers if decoder else config.num_layers,
        config.num_heads,
        config.key_value_dim,
        config.intermediate_dim,
        activation=config.activation,
        decoder=decoder,
        num_buckets=config.num_buckets,
        max_distance=config.max_distance,
        dropout=config.dropout,
        dtype=dtype,
        name="decoder" if decoder else "encoder",
    )


def t5_config(preset: str, **changes: Any) -> T5Config:
    """The shape of a preset, with changes.

    Raises:
        ValueError: The preset is unknown.
    """
    if preset not in T5_PRESETS:
        raise ValueError(f"Unknown preset: {preset!r}. Expected one of {sorted(T5_PRESETS)}.")
    return dataclasses.replace(T5_PRESETS[preset], **changes)


def check_dtype(policy: Any) -> None:
    """Refuses float16.

    Raises:
        ValueError: The compute or the variable dtype is float16.
    """
    if "float16" in (policy.compute_dtype, policy.variable_dtype):
        raise ValueError(
            "T5 cannot be computed in float16: activations of its feed-forward layers exceed "
            "float16's largest number, 65,504, and become infinite (huggingface/transformers#5651)."
            f" Received: {policy.name}. Use bfloat16, which has float32's range, or float32."
        )
