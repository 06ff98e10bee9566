"""BERT and RoBERTa, and Sentence-BERT: one vector for a sentence or a pair."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal, Self, get_args

import keras
from keras import ops

from use_st5.layers.attention import EXCLUDED, MultiHeadAttention, Packing
from use_st5.layers.lora_dense import LoRADense
from use_st5.layers.pooling import (
    first_token,
    l2_normalize,
    last_token,
    masked_max,
    masked_mean,
    masked_scaled_sum,
    masked_weighted_mean,
)
from use_st5.layers.random_normal import RandomNormal, without_initial_values
from use_st5.models.encoder_model import EncoderModel

DenseActivation = Literal[
    "linear", "tanh", "relu", "gelu", "sigmoid", "silu", "mish", "elu", "leaky_relu"
]


@dataclasses.dataclass(frozen=True)
class ProjectionConfig:
    """A dense layer after the pooling, like sentence-transformers' `Dense`."""

    units: int
    use_bias: bool = True
    activation: DenseActivation = "tanh"


@dataclasses.dataclass(frozen=True)
class NormConfig:
    """A layer norm after the pooling, like sentence-transformers' `LayerNorm`."""

    epsilon: float = 1e-5


def behind_pooling(config: ProjectionConfig | NormConfig, name: str) -> keras.layers.Layer:
    """The layer of a configuration, computed in float32."""
    if isinstance(config, NormConfig):
        return keras.layers.LayerNormalization(epsilon=config.epsilon, dtype="float32", name=name)
    activation: Any = config.activation
    if activation == "leaky_relu":  # The slope of torch; that of Keras is 0.2.
        activation = functools.partial(ops.leaky_relu, negative_slope=0.01)
    return keras.layers.Dense(
        config.units,
        use_bias=config.use_bias,
        activation=activation,
        dtype="float32",
        name=name,
    )


Activation = Literal["gelu", "gelu_tanh"]
Pooling = Literal["mean", "cls", "max", "mean_sqrt_len", "weightedmean", "lasttoken"]

POOLINGS: tuple[Pooling, ...] = get_args(Pooling)


@dataclasses.dataclass(frozen=True)
class BertConfig:
    """Shape of a BERT (Devlin et al. 2019, arXiv 1810.04805) or a RoBERTa (arXiv 1907.11692).

    Attributes:
        vocabulary_size: Rows of the token table.
        num_layers: Blocks.
        hidden_dim: Width of the model.
        intermediate_dim: Width of the feed-forward layers.
        num_heads: Attention heads, which divide `hidden_dim`.
        max_positions: Rows of the position table: tokens beyond this number are not read.
        num_token_types: Rows of the table of token types: 2 if the model distinguishes the second
            text of a pair from the first, 1 for RoBERTa, 0 for no such table.
        separator_id: Id of the token that ends a text. Tokens after the first separator have type
            1; None: all tokens have type 0.
        activation: Activation of the feed-forward layers: "gelu", or "gelu_tanh", its
            approximation.
        layer_norm_epsilon: Added to the variance in each layer norm.
        dropout: Rate on embeddings, and on each output that a block adds to its input, in training.
        attention_dropout: Rate on the attention weights, in training.
    """

    vocabulary_size: int
    num_layers: int
    hidden_dim: int
    intermediate_dim: int
    num_heads: int
    max_positions: int = 512
    num_token_types: int = 2
    separator_id: int | None = None
    activation: Activation = "gelu"
    layer_norm_epsilon: float = 1e-12
    dropout: float = 0.1
    attention_dropout: float = 0.1

    def __post_init__(self) -> None:
        if self.hidden_dim % self.num_heads:
            heads, dim = self.num_heads, self.hidden_dim
            raise ValueError(f"num_heads: expected a divisor of {dim}, received {heads}.")

    @property
    def own_tables(self) -> dict[str, tuple[int, int]]:
        """Path → shape of the tables that a relative of BERT adds."""
        return {}


def _roberta(layers: int, dim: int, intermediate_dim: int, heads: int) -> BertConfig:
    return BertConfig(
        50_265,
        layers,
        dim,
        intermediate_dim,
        heads,
        num_token_types=1,
        separator_id=2,
        layer_norm_epsilon=1e-5,
    )


# bert_config.json of google-research/bert's archives, whose vocab.txt has [SEP] at 102; config.json
# of FacebookAI/roberta-{base,large}, whose 514 positions begin at padding_idx + 1 = 2; config.json
# of sentence-transformers/all-MiniLM-L6-v2.
BERT_PRESETS: dict[str, BertConfig] = {
    "bert_base_uncased": BertConfig(30_522, 12, 768, 3072, 12, separator_id=102),
    "bert_base_cased": BertConfig(28_996, 12, 768, 3072, 12, separator_id=102),
    "bert_large_uncased": BertConfig(30_522, 24, 1024, 4096, 16, separator_id=102),
    "bert_large_cased": BertConfig(28_996, 24, 1024, 4096, 16, separator_id=102),
    "roberta_base": _roberta(12, 768, 3072, 12),
    "roberta_large": _roberta(24, 1024, 4096, 16),
    "minilm_l6": BertConfig(30_522, 6, 384, 1536, 12, separator_id=102),
}


# Standard deviation of all initial weights (Devlin et al. 2019, `initializer_range` in the
# published settings).
STDDEV = 0.02


class BertBlock(keras.layers.Layer):
    """Self-attention and a feed-forward layer, each added to its input before a norm (float32)."""

    def __init__(self, config: BertConfig, **kwargs: Any) -> None:
        super().__init__(autocast=False, **kwargs)
        self.config = config
        policy = self.dtype_policy
        self.attention = MultiHeadAttention(
            config.num_heads,
            config.hidden_dim // config.num_heads,
            scaled=True,
            use_bias=True,
            stddev=STDDEV,
            dropout=config.attention_dropout,
            dtype=policy,
            name="attention",
        )
        self.attention_norm = layer_norm(config, "attention_norm")
        self.inner = dense(
            config.intermediate_dim, "inner", activation=activation_of(config), dtype=policy
        )
        self.outer = dense(config.hidden_dim, "outer", dtype=policy)
        self.output_norm = layer_norm(config, "output_norm")
        self.dropout_layer = keras.layers.Dropout(config.dropout, dtype="float32")

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        shape = (None, None, self.config.hidden_dim)
        for layer in (self.attention, self.attention_norm, self.inner, self.output_norm):
            layer.build(shape)
        self.outer.build((None, None, self.config.intermediate_dim))
        self.built = True

    def call(
        self, x: Any, bias: Any = None, packing: Packing | None = None, training: bool = False
    ) -> Any:
        attended = self.attention(x, bias=bias, packing=packing, training=training)
        x = self.attention_norm(x + self._dropped(attended, training))
        return self.output_norm(x + self._dropped(self.outer(self.inner(x)), training))

    @property
    def linear_layers(self) -> dict[str, LoRADense]:
        """Role → layer, for adapters."""
        return {**self.attention.linear_layers, "inner": self.inner, "outer": self.outer}

    def _dropped(self, x: Any, training: bool) -> Any:
        return self.dropout_layer(ops.cast(x, "float32"), training=training)


def activation_of(config: BertConfig) -> Callable[[Any], Any]:
    """The activation of the feed-forward layers."""
    approximate = config.activation == "gelu_tanh"
    return functools.partial(ops.gelu, approximate=True) if approximate else _exact_gelu


def _exact_gelu(x: Any) -> Any:
    """`x·Φ(x)` with `erf`: Keras uses `erfc` in TensorFlow, which tf2onnx does not support."""
    half = ops.cast(0.5, x.dtype)
    return half * x * (1 + ops.erf(x * ops.cast(0.5**0.5, x.dtype)))


def dense(
    units: int,
    name: str,
    *,
    activation: Callable[[Any], Any] | None = None,
    use_bias: bool = True,
    dtype: Any,
) -> LoRADense:
    """A linear layer with BERT's initial weights."""
    return LoRADense(
        units,
        activation=activation,
        use_bias=use_bias,
        kernel_initializer=RandomNormal(stddev=STDDEV),
        dtype=dtype,
        name=name,
    )


def layer_norm(
    config: BertConfig, name: str, *, center: bool = True
) -> keras.layers.LayerNormalization:
    """A layer norm with a scale and, if it centers, a shift; computed in float32."""
    return keras.layers.LayerNormalization(
        epsilon=config.layer_norm_epsilon, center=center, dtype="float32", name=name
    )


class MaskedWordHead(keras.layers.Layer):
    """Vectors to float32 logits of words: a dense layer, gelu, a norm, the token table, a bias."""

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


PADDING_ID = 0
_POOLED: dict[str, Callable[[Any, Any], Any]] = {
    "mean": masked_mean,
    "cls": lambda outputs, tokens: first_token(outputs),
    "max": masked_max,
    "mean_sqrt_len": masked_scaled_sum,
    "weightedmean": masked_weighted_mean,
    "lasttoken": last_token,
}
_COMMON_LAYERS = ("embedding", "position_embedding", "type_embedding", "embedding_norm")


@keras.saving.register_keras_serializable(package="use_st5")
class SentenceBert(EncoderModel):
    """Sentence-BERT (Reimers and Gurevych 2019, arXiv 1908.10084), section 3.

    Args:
        config: The shape of the BERT; `SentenceBert.from_preset` knows the published ones.
        pooling: One or several, whose vectors are put one after the other ("mean+max"). "mean": the
            mean of the outputs over all tokens, including [CLS] and [SEP]; "cls":
            the output of the first token; "max": the maximum of each dimension over all tokens. As
            in sentence-transformers, "mean_sqrt_len": the sum divided by √length; "weightedmean":
            the mean weighted by position; "lasttoken": the output of the last token.
        dense: A dense layer after the pooling, computed in float32; None: no such layer.
        after: Further layers after the dense layer, in order.
        normalize: Whether vectors are scaled to length 1.
        head: Whether the model has the masked language model's head, for `word_logits`.

    Attributes:
        pooler: `kernel` and `bias` of the checkpoint's layer `tanh(x·kernel + bias)` over the first
            token, with which a cross-encoder starts; None if there is none. They are no weights of
            the model, and do not change the vectors.

    Call arguments:
        ids: int32 `[batch, length]`, 0 = padding, including the special tokens. A pair is one row,
            `[CLS] A [SEP] B [SEP]`. Rows longer than the position table are cut.
        training: Whether dropout acts.

    Returns:
        float32 `[batch, dimension]`.
    """

    config_type: ClassVar[type[BertConfig]] = BertConfig
    packs = True
    presets: ClassVar[Mapping[str, BertConfig]] = BERT_PRESETS
    own_arguments: ClassVar = ("pooling", "dense", "after", "normalize", "head")
    # Further layers, besides the common ones, whose weights `pooled` copies.
    own_layers: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self,
        config: BertConfig,
        *,
        pooling: str = "mean",
        dense: ProjectionConfig | None = None,
        after: Sequence[ProjectionConfig | NormConfig] = (),
        normalize: bool = False,
        head: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if not {*pooling.split("+")} <= {*POOLINGS}:
            raise ValueError(f"Unknown pooling: {pooling!r}. Expected one of {POOLINGS}.")
        self.config = config
        self.pooling = pooling
        self.dense = dense
        self.after = tuple(after)
        self.normalize = normalize
        policy = self.dtype_policy
        self.embedding = _table(config.vocabulary_size, config, "embedding", policy)
        self.position_embedding: Any = None
        self.type_embedding: Any = None
        self.final_norm: Any = None
        self.blocks = self._make_network()
        self.dropout_layer = keras.layers.Dropout(config.dropout, dtype="float32")
        self.projection = None if dense is None else behind_pooling(dense, "projection")
        self.further = [
            behind_pooling(layer, f"further_{number}") for number, layer in enumerate(self.after)
        ]
        self.head = MaskedWordHead(config, dtype=policy, name="head") if head else None
        self.pooler: Any = None

    def _make_network(self) -> list[Any]:
        """Makes the layers after the token table, and returns the blocks."""
        config, policy = self.config, self.dtype_policy
        self.position_embedding = _table(config.max_positions, config, "position_embedding", policy)
        if config.num_token_types:
            self.type_embedding = _table(config.num_token_types, config, "type_embedding", policy)
        self.embedding_norm = layer_norm(config, "embedding_norm")
        numbers = range(config.num_layers)
        return [BertBlock(config, dtype=policy, name=f"block_{number}") for number in numbers]

    @property
    def own_tables(self) -> dict[str, Any]:
        """Path → variable, for the paths of `BertConfig.own_tables`."""
        return {}

    @property
    def dimension(self) -> int:
        """Dimension of the sentence vector."""
        configs = (self.dense, *self.after)
        widths = [layer.units for layer in configs if isinstance(layer, ProjectionConfig)]
        return widths[-1] if widths else self._pooled_dim

    @property
    def _pooled_dim(self) -> int:
        return self.config.hidden_dim * len(self.pooling.split("+"))

    @property
    def behind_pooling(self) -> list[keras.layers.Layer]:
        """The layers after the pooling, in order."""
        return [*([] if self.projection is None else [self.projection]), *self.further]

    def build(self, _input_shape: Any = None) -> None:
        for table in (self.embedding, self.position_embedding, self.type_embedding):
            if table is not None:
                table.build((None, None))
        width = self.config.hidden_dim
        for layer in (self.embedding_norm, *self.blocks):
            layer.build((None, None, width))
        width = self._pooled_dim
        for layer in self.behind_pooling:
            layer.build((None, width))
            width = layer.compute_output_shape((None, width))[-1]
        if self.head is not None:
            self.head.build((None, self.config.hidden_dim))
        self.built = True

    def call(self, ids: Any, training: bool = False) -> Any:
        ids = ids[:, : self.config.max_positions]
        return self.encode_embedded(self.embedding(ids), ids, training=training)

    def encode_embedded(
        self, embedded: Any, ids: Any, *, packed: bool = False, training: bool = False
    ) -> Any:
        """Computes the sentence vectors from `embedded`, the token table's rows for `ids`.

        With `packed`, padding is not computed. Compiled programs do not allow this.
        """
        outputs, tokens = self.token_outputs(embedded, ids, training, packed)
        vectors = [_POOLED[name](outputs, tokens) for name in self.pooling.split("+")]
        vector = ops.concatenate(vectors, axis=-1) if len(vectors) > 1 else vectors[0]
        for layer in self.behind_pooling:
            vector = layer(vector)
        return l2_normalize(vector) if self.normalize else vector

    def pooled(self, pooling: str, *, head: bool = False) -> Self:
        """A model with the same weights and another pooling, without projection and scaling.

        Cross-encoders and DefSent start from it.

        Args:
            pooling: As in the constructor.
            head: Whether it has the masked language model's head: this model's, or a fresh one
                with the identity matrix as the kernel of its transform.
        """
        model = type(self)(self.config, pooling=pooling, head=head, dtype=self.dtype_policy)
        with contextlib.nullcontext() if head else without_initial_values():
            model.build()
        for part in (*_COMMON_LAYERS, *self.own_layers):
            if getattr(self, part) is not None:
                getattr(model, part).set_weights(getattr(self, part).get_weights())
        for target, source in zip(model.blocks, self.blocks, strict=True):
            target.set_weights(source.get_weights())
        model.pooler = self.pooler
        if model.head is not None and self.head is not None:
            model.head.set_weights(self.head.get_weights())
        elif model.head is not None:
            # Chosen on held-out definitions: experiments/sbert_defsent has the figures.
            model.head.transform.kernel.assign(keras.ops.eye(self.config.hidden_dim))
        return model

    def word_logits(self, vectors: Any) -> Any:
        """The logits of all words of the vocabulary for each vector.

        Args:
            vectors: `[..., hidden_dim]`, the vectors of texts or of tokens.

        Returns:
            float32 `[..., vocabulary_size]`.
        """
        if self.head is None:
            raise ValueError("Expected a model built with head=True, this one has no head.")
        return self.head(vectors, self.embedding.embeddings)

    def get_config(self) -> dict[str, Any]:
        fields = super().get_config()
        fields["dense"] = dataclasses.asdict(self.dense) if self.dense else None
        fields["after"] = [dataclasses.asdict(layer) for layer in self.after]
        fields["head"] = self.head is not None
        # Written only if there are some: earlier versions do not know this field.
        if not self.after:
            del fields["after"]
        return fields

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Self:
        config["dense"] = config["dense"] and ProjectionConfig(**config["dense"])
        config["after"] = [
            NormConfig(**fields) if "epsilon" in fields else ProjectionConfig(**fields)
            for fields in config.get("after", ())
        ]
        return super().from_config(config)

    def token_outputs(
        self, embedded: Any, ids: Any, training: bool = False, packed: bool = False
    ) -> tuple[Any, Any]:
        """The last block's outputs, and a mask, True for tokens."""
        limit = self.config.max_positions
        embedded, ids = embedded[:, :limit], ids[:, :limit]
        tokens = ops.not_equal(ids, PADDING_ID)
        x = self._with_positions(ops.cast(embedded, "float32"), ids)
        packing = Packing.of(tokens, self.config.num_heads) if packed else None
        x = self.embedding_norm(x if packing is None else packing.pack(x))
        x = self.dropout_layer(x, training=training)
        for block, inputs in zip(self.blocks, self._block_inputs(tokens), strict=True):
            x = block(x, **inputs, packing=packing, training=training)
        if self.final_norm is not None:
            x = self.final_norm(x)
        return x if packing is None else packing.unpack(x), tokens

    def _with_positions(self, x: Any, ids: Any) -> Any:
        """Adds the rows of the types and positions to the rows of the tokens."""
        if self.type_embedding is not None:
            # Sliced once, since each slice reads the variable.
            table = self.type_embedding.embeddings[:2]
            rows, separator = table[0], self.config.separator_id
            if separator is not None and self.config.num_token_types > 1:
                ends = ops.cast(ops.equal(ids, separator), "int32")
                second = ops.greater(ops.cumsum(ends, axis=1) - ends, 0)
                rows = ops.where(ops.expand_dims(second, -1), table[1], table[0])
            x = x + ops.cast(rows, "float32")
        positions = self.position_embedding.embeddings[: ops.shape(ids)[1]]
        return x + ops.cast(positions, "float32")

    def _block_inputs(self, tokens: Any) -> list[dict[str, Any]]:
        """The further arguments of each block by name, from the mask bool `[batch, length]`."""
        return [{"bias": self._score_bias(tokens)}] * len(self.blocks)

    def _score_bias(self, tokens: Any) -> Any:
        """The `bias` of all blocks, which hides padding: bool `[batch, length]` → float32."""
        # Adding a bias to each score costs less than a selection (`where`) in every block.
        padding = ops.cast(ops.logical_not(tokens), "float32")
        return ops.expand_dims(padding * EXCLUDED, (1, 2))


def _table(rows: int, config: BertConfig, name: str, dtype: Any) -> keras.layers.Embedding:
    initial = RandomNormal(stddev=STDDEV)
    return keras.layers.Embedding(
        rows, config.hidden_dim, embeddings_initializer=initial, dtype=dtype, name=name
    )
