"""Multi-head attention, and a block of a Transformer."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import keras
from keras import ops

from use_st5.layers.lora_dense import LoRADense
from use_st5.layers.positions import rotated
from use_st5.layers.random_normal import RandomNormal


class Packing(NamedTuple):
    """The positions of the tokens in a padded batch.

    Linear layers, norms and activations compute each token separately, so they need not compute
    padding. In a batch of 32 sentences, a third of the positions is padding. Only attention
    combines tokens. The number of tokens differs between batches. TensorFlow graphs allow this on a
    CPU or GPU, but compiled programs do not.

    Attributes:
        rows: int32 `[tokens]`, ascending: the positions, `number of the text · length + position in
            it`.
        places: int32 `[batch, length]`: the index of the token at each position; any index at
            padding.
        split: int32 `[batch, heads, length]`: the same for each head of each token.
        joined: int32 `[tokens, heads]`: the position of each head of each token in `[batch, heads,
            length]`.
    """

    rows: Any
    places: Any
    split: Any
    joined: Any

    @classmethod
    def of(cls, tokens: Any, num_heads: int) -> Self:
        """The packing of a batch; tokens: bool `[batch, length]`."""
        batch, length = ops.shape(tokens)
        # At least one position is computed, because `places` needs an index for padding.
        flat = ops.reshape(tokens, (-1,)) | ops.equal(ops.arange(batch * length, dtype="int32"), 0)
        rows = ops.cast(ops.nonzero(flat)[0], "int32")
        places = ops.reshape(ops.cumsum(ops.cast(flat, "int32")) - 1, (batch, length))
        heads = ops.arange(num_heads, dtype="int32")
        text, place = ops.floor_divide(rows, length), ops.mod(rows, length)
        return cls(
            rows,
            places,
            split=places[:, None, :] * num_heads + heads[:, None],
            joined=(text[:, None] * num_heads + heads) * length + place[:, None],
        )

    def pack(self, x: Any) -> Any:
        """`[batch, length, dim]` → `[tokens, dim]`."""
        return ops.take(ops.reshape(x, (-1, x.shape[-1])), self.rows, axis=0)

    def unpack(self, x: Any) -> Any:
        """`[tokens, dim]` → `[batch, length, dim]`; the values at padding have no meaning."""
        return ops.take(x, self.places, axis=0)

    def split_heads(self, x: Any, width: int) -> Any:
        """`[tokens, heads · width]` → `[batch, heads, length, width]`."""
        return ops.take(ops.reshape(x, (-1, width)), self.split, axis=0)

    def join_heads(self, x: Any) -> Any:
        """`[batch, heads, length, width]` → `[tokens, heads · width]`."""
        width = x.shape[-1]
        rows = ops.take(ops.reshape(x, (-1, width)), self.joined, axis=0)
        return ops.reshape(rows, (-1, self.joined.shape[-1] * width))


# The logit of entries that a float32 softmax excludes, such as hidden keys. It is far below all
# others, but finite, so that a row without a visible key gives a mean, not NaN.
EXCLUDED = -1e9


@keras.saving.register_keras_serializable(package="use_st5")
class MultiHeadAttention(keras.layers.Layer):
    """Multi-head attention (Vaswani et al. 2017); without `scaled`, in the form of T5.

    T5 (`t5x/examples/t5/layers.py`) does not divide the scores by √key_value_dim. Instead, the
    initial weights of the query are smaller by that factor. Scores and softmax are always computed
    in float32.

    Args:
        num_heads: Number of attention heads.
        key_value_dim: Width of a head. `num_heads · key_value_dim` may differ from the width of the
            model.
        scaled: Whether to divide the scores by √key_value_dim (Vaswani et al. 2017, Eq. 1).
        use_bias: Whether the linear layers have a bias.
        stddev: Standard deviation of the initial kernels; None: that of T5, which depends on the
            widths.
        dropout: Dropout rate on the attention weights.

    Call arguments:
        x: The queries, `[batch, queries, dim]`.
        context: Source of keys and values, `[batch, keys, dim]`; None: `x` itself.
        visible: bool, True for visible keys; broadcasts to `[batch, heads, queries, keys]`. None:
            all keys are visible.
        bias: float32, added to the scores; broadcasts to the same shape.
        packing: The packing of `x`, if `x` is packed as `[tokens, dim]`. Only for self-attention.
        angles: Rotary angles of the positions (`rotary_angles`), which rotate queries and keys.
            None: no rotation. Only for self-attention.
        training: Whether to apply dropout.

    Returns:
        A tensor with the shape of `x`.
    """

    def __init__(
        self,
        num_heads: int,
        key_value_dim: int,
        *,
        scaled: bool = False,
        use_bias: bool = False,
        stddev: float | None = None,
        dropout: float = 0.0,
        **kwargs: Any,
    ) -> None:
        # Otherwise Keras would cast the bias to the compute dtype.
        super().__init__(autocast=False, **kwargs)
        self.num_heads = num_heads
        self.key_value_dim = key_value_dim
        self.scaled = scaled
        self.use_bias = use_bias
        self.stddev = stddev
        self.dropout = dropout
        self.dropout_layer = keras.layers.Dropout(dropout, dtype="float32")

    def build(self, input_shape: tuple[Any, ...]) -> None:
        dim, inner = input_shape[-1], self.num_heads * self.key_value_dim
        query_fan = dim if self.scaled else dim * self.key_value_dim
        self.query = self._dense(inner, query_fan**-0.5, "query")
        self.key = self._dense(inner, dim**-0.5, "key")
        self.value = self._dense(inner, dim**-0.5, "value")
        self.output_dense = self._dense(dim, inner**-0.5, "output")
        for dense in (self.query, self.key, self.value):
            dense.build((None, None, dim))
        self.output_dense.build((None, None, inner))
        self.built = True

    def call(
        self,
        x: Any,
        context: Any = None,
        visible: Any = None,
        bias: Any = None,
        packing: Packing | None = None,
        angles: tuple[Any, Any] | None = None,
        training: bool = False,
    ) -> Any:
        context = x if context is None else context
        query = self._heads(self.query, x, packing)
        key = self._heads(self.key, context, packing)
        value = self._heads(self.value, context, packing)
        if angles is not None:
            query, key = rotated(query, angles), rotated(key, angles)
        scores = ops.cast(ops.matmul(query, ops.transpose(key, (0, 1, 3, 2))), "float32")
        if self.scaled:
            scores = scores * self.key_value_dim**-0.5
        if bias is not None:
            scores = scores + bias
        if visible is not None:
            scores = ops.where(visible, scores, EXCLUDED)
        weights = self.dropout_layer(ops.softmax(scores, axis=-1), training=training)
        head_outputs = ops.matmul(ops.cast(weights, value.dtype), value)
        outputs = (
            self._joined(head_outputs) if packing is None else packing.join_heads(head_outputs)
        )
        return self.output_dense(outputs)

    @property
    def linear_layers(self) -> dict[str, LoRADense]:
        """The linear layers by role, for LoRA."""
        return {
            "query": self.query,
            "key": self.key,
            "value": self.value,
            "output": self.output_dense,
        }

    def _dense(self, units: int, stddev: float, name: str) -> LoRADense:
        return LoRADense(
            units,
            use_bias=self.use_bias,
            kernel_initializer=RandomNormal(stddev=self.stddev or stddev),
            dtype=self.dtype_policy,
            name=name,
        )

    def _heads(self, dense: LoRADense, x: Any, packing: Packing | None) -> Any:
        """Applies a dense layer and splits the result: `[batch, heads, length, width]`."""
        if packing is not None:
            return packing.split_heads(dense(x), self.key_value_dim)
        # Use the input's shape: with the output's, tf2onnx merges two reshapes into a wrong one.
        batch, length = ops.shape(x)[:2]
        split = ops.reshape(dense(x), (batch, length, self.num_heads, self.key_value_dim))
        return ops.transpose(split, (0, 2, 1, 3))

    def _joined(self, x: Any) -> Any:
        """`[batch, heads, length, width]` → `[batch, length, heads · width]`."""
        batch, _, length, _ = ops.shape(x)
        joined = ops.transpose(x, (0, 2, 1, 3))
        return ops.reshape(joined, (batch, length, self.num_heads * self.key_value_dim))


@keras.saving.register_keras_serializable(package="use_st5")
class TransformerBlock(keras.layers.Layer):
    """Self-attention and a feed-forward layer, each with a pre-norm and a residual connection.

    The architecture is that of tensor2tensor, which the published USE graph uses: attention without
    biases, and a feed-forward layer (relu) with biases.

    Args:
        num_heads: Number of attention heads; must divide the width of the model.
        intermediate_dim: Width of the feed-forward layer.
        dropout: Dropout rate on the attention weights, inside the feed-forward layer and before
            each addition.

    Call arguments:
        x: `[batch, length, dim]`.
        visible: bool, True for tokens; broadcasts to `[batch, heads, length, length]`.
        packing: The packing of `x`, if `x` is packed as `[tokens, dim]`.
        training: Whether to apply dropout.

    Returns:
        A tensor with the shape of `x`.
    """

    def __init__(
        self, num_heads: int, intermediate_dim: int, *, dropout: float = 0.0, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.intermediate_dim = intermediate_dim
        self.dropout = dropout
        policy = self.dtype_policy
        self.attention_norm = layer_norm("attention_norm")
        self.feed_forward_norm = layer_norm("feed_forward_norm")
        self.inner = keras.layers.Dense(
            intermediate_dim, activation="relu", dtype=policy, name="inner"
        )
        self.dropout_layer = keras.layers.Dropout(dropout, dtype=policy)

    def build(self, input_shape: tuple[Any, ...]) -> None:
        dim = input_shape[-1]
        self.attention = MultiHeadAttention(
            self.num_heads,
            dim // self.num_heads,
            scaled=True,
            dropout=self.dropout,
            dtype=self.dtype_policy,
            name="attention",
        )
        self.outer = keras.layers.Dense(dim, dtype=self.dtype_policy, name="outer")
        shape = (None, None, dim)
        for layer in (self.attention_norm, self.attention, self.feed_forward_norm, self.inner):
            layer.build(shape)
        self.outer.build((None, None, self.intermediate_dim))
        self.built = True

    def call(
        self, x: Any, visible: Any = None, packing: Packing | None = None, training: bool = False
    ) -> Any:
        attended = self.attention(
            self.attention_norm(x), visible=visible, packing=packing, training=training
        )
        x = x + self.dropout_layer(attended, training=training)
        hidden = self.dropout_layer(self.inner(self.feed_forward_norm(x)), training=training)
        return x + self.dropout_layer(self.outer(hidden), training=training)


def layer_norm(name: str) -> keras.layers.LayerNormalization:
    """A layer norm with scale and shift, computed in float32."""
    return keras.layers.LayerNormalization(epsilon=1e-6, dtype="float32", name=name)
