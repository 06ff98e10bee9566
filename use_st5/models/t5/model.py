"""T5: the presets, the blocks, and the model of encoder and decoder."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal

import keras
from keras import ops

from use_st5.layers.attention import MultiHeadAttention, Packing
from use_st5.layers.lora_dense import LoRADense
from use_st5.layers.positions import RelativePositionBias
from use_st5.layers.random_normal import RandomNormal
from use_st5.models.encoder_model import EncoderModel

# Rows of the vocabulary: 32,000 pieces and 100 sentinels, rounded up to a multiple of 128.
T5_ROWS = 32_128
_MT5_ROWS = 250_112

Activation = Literal["relu", "gated_gelu"]

PADDING_ID = 0  # also the start token of the decoder
_EPSILON = 1e-6


@dataclasses.dataclass(frozen=True)
class T5Config:
    """Shape of a T5 encoder and decoder.

    Attributes:
        vocabulary_size: Rows of the token table.
        num_layers: Blocks of the encoder, and of the decoder.
        hidden_dim: Width of the model.
        intermediate_dim: Width of the feed-forward layers.
        num_heads: Attention heads.
        key_value_dim: Width of a head; `num_heads · key_value_dim` may differ from `hidden_dim`.
        activation: "relu" for T5 1.0, "gated_gelu" for T5 1.1 and mT5.
        tied_softmax: Whether the token table is the decoder's output layer too (T5 1.0).
        scaled_softmax: Whether the decoder's output is divided by √hidden_dim before the output
            layer (T5 1.0).
        num_decoder_layers: Blocks of the decoder; None: as many as in the encoder.
        num_buckets: Buckets of the relative position bias.
        max_distance: Distance in tokens; all distances from here on share a bucket.
        dropout: Rate in training. 0 as in Sentence-T5's dual encoder; T5's pre-training had 0.1
            for 1.0 and 0 for 1.1.
    """

    vocabulary_size: int
    num_layers: int
    hidden_dim: int
    intermediate_dim: int
    num_heads: int
    key_value_dim: int = 64
    activation: Activation = "relu"
    tied_softmax: bool = True
    scaled_softmax: bool = True
    num_decoder_layers: int | None = None
    num_buckets: int = 32
    max_distance: int = 128
    dropout: float = 0.0

    @property
    def decoder_layers(self) -> int:
        """Blocks of the decoder."""
        return self.num_layers if self.num_decoder_layers is None else self.num_decoder_layers


def _gated(rows: int, layers: int, dim: int, intermediate_dim: int, heads: int) -> T5Config:
    return T5Config(
        rows,
        layers,
        dim,
        intermediate_dim,
        heads,
        activation="gated_gelu",
        tied_softmax=False,
        scaled_softmax=False,
    )


# t5x/examples/t5/{t5_1_0,t5_1_1,mt5}/*.gin.
T5_PRESETS: dict[str, T5Config] = {
    "t5_small": T5Config(T5_ROWS, 6, 512, 2048, 8),
    "t5_base": T5Config(T5_ROWS, 12, 768, 3072, 12),
    "t5_large": T5Config(T5_ROWS, 24, 1024, 4096, 16),
    "t5_3b": T5Config(T5_ROWS, 24, 1024, 16_384, 32, 128),
    "t5_11b": T5Config(T5_ROWS, 24, 1024, 65_536, 128, 128),
    "t5_1_1_small": _gated(T5_ROWS, 8, 512, 1024, 6),
    "t5_1_1_base": _gated(T5_ROWS, 12, 768, 2048, 12),
    "t5_1_1_large": _gated(T5_ROWS, 24, 1024, 2816, 16),
    "t5_1_1_xl": _gated(T5_ROWS, 24, 2048, 5120, 32),
    "t5_1_1_xxl": _gated(T5_ROWS, 24, 4096, 10_240, 64),
    "mt5_small": _gated(_MT5_ROWS, 8, 512, 1024, 6),
    "mt5_base": _gated(_MT5_ROWS, 12, 768, 2048, 12),
    "mt5_large": _gated(_MT5_ROWS, 24, 1024, 2816, 16),
    "mt5_xl": _gated(_MT5_ROWS, 24, 2048, 5120, 32),
    "mt5_xxl": _gated(_MT5_ROWS, 24, 4096, 10_240, 64),
    # Ours, T5 1.0's layout for two cores (`experiments/sentence_t5/pretrain.py`): the encoder takes
    # 32 MB in float32, and three quarters of that are the token table.
    "t5_mini_en": T5Config(T5_ROWS, 4, 192, 768, 3, num_decoder_layers=2),
    # Model of `experiments/bundled_models/st5_mini_en.py`, with T5 1.1's layout: 35 MB in int8.
    "st5_mini_en": _gated(T5_ROWS, 6, 512, 1024, 8),
}


class T5FeedForward(keras.layers.Layer):
    """`relu(x·W)·W_out` (T5 1.0), `(gelu(x·W_0) ⊙ x·W_1)·W_out` with the tanh-gelu (1.1)."""

    def __init__(self, config: T5Config, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.config = config
        self.dropout_layer = keras.layers.Dropout(config.dropout, dtype=self.dtype_policy)

    def build(self, _input_shape: Any = None) -> None:
        dim, inner = self.config.hidden_dim, self.config.intermediate_dim
        gated = self.config.activation == "gated_gelu"
        self.inner = self._dense(inner, dim, "inner")
        self.linear = self._dense(inner, dim, "linear") if gated else None
        self.outer = self._dense(dim, inner, "outer")
        self.built = True

    @property
    def linear_layers(self) -> dict[str, LoRADense]:
        """Role → layer, for adapters."""
        layers = {"inner": self.inner, "linear": self.linear, "outer": self.outer}
        return {role: layer for role, layer in layers.items() if layer is not None}

    def call(self, x: Any, training: bool = False) -> Any:
        if self.linear is not None:
            hidden = ops.gelu(self.inner(x), approximate=True) * self.linear(x)
        else:
            hidden = ops.relu(self.inner(x))
        return self.outer(self.dropout_layer(hidden, training=training))

    def _dense(self, units: int, width: int, name: str) -> LoRADense:
        dense = LoRADense(
            units,
            use_bias=False,
            kernel_initializer=RandomNormal(stddev=width**-0.5),
            dtype=self.dtype_policy,
            name=name,
        )
        dense.build((None, None, width))
        return dense


class T5Block(keras.layers.Layer):
    """Self-attention, cross-attention in a decoder, and a feed-forward layer, with pre-norms."""

    def __init__(self, config: T5Config, *, decoder: bool = False, **kwargs: Any) -> None:
        super().__init__(autocast=False, **kwargs)
        self.config = config
        self.decoder = decoder
        policy = self.dtype_policy
        self.attention_norm = _rms_norm("attention_norm", policy)
        self.attention = self._attention("attention")
        if decoder:
            self.cross_norm = _rms_norm("cross_norm", policy)
            self.cross = self._attention("cross")
        self.feed_forward_norm = _rms_norm("feed_forward_norm", policy)
        self.feed_forward = T5FeedForward(config, dtype=policy, name="feed_forward")
        self.dropout_layer = keras.layers.Dropout(config.dropout, dtype=policy)

    def _attention(self, name: str) -> MultiHeadAttention:
        config = self.config
        return MultiHeadAttention(
            config.num_heads,
            config.key_value_dim,
            dropout=config.dropout,
            dtype=self.dtype_policy,
            name=name,
        )

    def build(self, _input_shape: Any = None) -> None:
        layers = [self.attention_norm, self.attention]
        if self.decoder:
            layers += [self.cross_norm, self.cross]
        for layer in (*layers, self.feed_forward_norm, self.feed_forward):
            layer.build((None, None, self.config.hidden_dim))
        self.built = True

    def call(
        self,
        x: Any,
        visible: Any = None,
        bias: Any = None,
        context: Any = None,
        context_visible: Any = None,
        packing: Packing | None = None,
        training: bool = False,
    ) -> Any:
        attended = self.attention(
            self.attention_norm(x), visible=visible, bias=bias, packing=packing, training=training
        )
        x = x + self.dropout_layer(attended, training=training)
        if self.decoder:
            attended = self.cross(
                self.cross_norm(x), context, visible=context_visible, training=training
            )
            x = x + self.dropout_layer(attended, training=training)
        fed = self.feed_forward(self.feed_forward_norm(x), training=training)
        return x + self.dropout_layer(fed, training=training)


def _rms_norm(name: str, policy: Any) -> keras.layers.RMSNormalization:
    """T5's layer norm: no mean, no bias, computed in float32."""
    return keras.layers.RMSNormalization(epsilon=_EPSILON, dtype=policy, name=name)


class T5Stack(keras.layers.Layer):
    """An encoder or decoder: blocks that share one relative position bias, and a norm.

    With `packed`, an encoder computes no padding; its outputs there have no meaning.
    """

    def __init__(self, config: T5Config, *, decoder: bool = False, **kwargs: Any) -> None:
        super().__init__(autocast=False, name="decoder" if decoder else "encoder", **kwargs)
        self.config = config
        self.decoder = decoder
        policy = self.dtype_policy
        layers = config.decoder_layers if decoder else config.num_layers
        self.blocks = [
            T5Block(config, decoder=decoder, dtype=policy, name=f"block_{number}")
            for number in range(layers)
        ]
        self.norm = _rms_norm("norm", policy)
        self.dropout_layer = keras.layers.Dropout(config.dropout, dtype=policy)

    def build(self, _input_shape: Any = None) -> None:
        dim = self.config.hidden_dim
        self.position_bias = RelativePositionBias(
            self.config.num_heads,
            bidirectional=not self.decoder,
            num_buckets=self.config.num_buckets,
            max_distance=self.config.max_distance,
            stddev=dim**-0.5,
            dtype=self.dtype_policy,
            name="position_bias",
        )
        self.position_bias.build()
        for layer in (*self.blocks, self.norm):
            layer.build((None, None, dim))
        self.built = True

    def call(
        self,
        x: Any,
        tokens: Any = None,
        context: Any = None,
        context_tokens: Any = None,
        packed: bool = False,
        training: bool = False,
    ) -> Any:
        length = ops.shape(x)[1]
        packing = Packing.of(tokens, self.config.num_heads) if packed else None
        bias = self.position_bias(query_length=length, key_length=length)
        visible = _of_keys(tokens)
        if self.decoder:
            before = ops.tril(ops.ones((length, length), "bool"))[None, None]
            visible = before if visible is None else ops.logical_and(visible, before)
        x = self.dropout_layer(x if packing is None else packing.pack(x), training=training)
        for block in self.blocks:
            x = block(
                x,
                visible=visible,
                bias=bias,
                context=context,
                context_visible=_of_keys(context_tokens),
                packing=packing,
                training=training,
            )
        x = self.dropout_layer(self.norm(x), training=training)
        return x if packing is None else packing.unpack(x)


def _of_keys(tokens: Any) -> Any:
    """`[batch, keys]` → `[batch, 1, 1, keys]`."""
    return None if tokens is None else ops.expand_dims(tokens, (1, 2))


@keras.saving.register_keras_serializable(package="use_st5")
class T5(EncoderModel):
    """The text-to-text Transformer (Raffel et al. 2020), versions 1.0 and 1.1, and mT5.

    The layout is that of `t5x/examples/t5/network.py`: RMS norms before each part, no biases, one
    relative position bias in each stack, embeddings not scaled.

    Args:
        config: The model's shape; `T5_PRESETS` has the published ones.

    Call arguments:
        inputs: {"encoder_ids", "decoder_ids"}: int32 `[batch, length]`, 0 = padding; the decoder's
            ids begin with 0.
        training: Whether dropout acts.

    Returns:
        Logits, float32 `[batch, decoder_length, vocabulary_size]`.
    """

    config_type = T5Config
    presets = T5_PRESETS

    def __init__(self, config: T5Config, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        refuse_float16(self.dtype_policy)
        self.config = config
        policy = self.dtype_policy
        self.embedding = make_embedding(config, dtype=policy)
        self.encoder = T5Stack(config, dtype=policy)
        self.decoder = T5Stack(config, decoder=True, dtype=policy)
        self.logits: Any = None
        if not config.tied_softmax:
            self.logits = keras.layers.Dense(
                config.vocabulary_size,
                use_bias=False,
                kernel_initializer=RandomNormal(stddev=config.hidden_dim**-0.5),
                dtype=policy,
                name="logits",
            )

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


def make_embedding(config: T5Config, *, dtype: Any) -> keras.layers.Embedding:
    """The token table of a T5; its outputs are not scaled."""
    return keras.layers.Embedding(
        config.vocabulary_size,
        config.hidden_dim,
        embeddings_initializer=RandomNormal(stddev=1.0),
        dtype=dtype,
        name="embedding",
    )


def refuse_float16(policy: Any) -> None:
    """Activations of T5 exceed float16's largest number, 65,504 (huggingface/transformers#5651)."""
    if "float16" in (policy.compute_dtype, policy.variable_dtype):
        raise ValueError(f"T5 cannot be computed in float16, received {policy.name}: use bfloat16.")
