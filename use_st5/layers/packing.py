"""Packing: the tokens of a padded batch without the padding."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

from keras import ops


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
        """The packing of a batch.

        Args:
            tokens: bool `[batch, length]`, True for tokens.
            num_heads: Number of attention heads.
        """
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
