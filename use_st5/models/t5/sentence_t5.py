"""Sentence-T5: one vector for a sentence."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import keras
from keras import ops

from use_st5.layers.pooling import l2_normalize, masked_mean
from use_st5.models.encoder_model import EncoderModel
from use_st5.models.t5.model import (
    PADDING_ID,
    T5_PRESETS,
    T5Config,
    T5Stack,
    make_embedding,
    refuse_float16,
)

Pooling = Literal["mean", "first", "decoder"]
POOLINGS: tuple[Pooling, ...] = ("mean", "first", "decoder")

# The same in published models of all sizes.
PROJECTION_DIM = 768
_EPSILON = 1e-6


@keras.saving.register_keras_serializable(package="use_st5")
class SentenceT5(EncoderModel):
    """Sentence-T5 (Ni et al. 2021, arXiv 2108.08877), section 3.1, with its three poolings.

    Args:
        config: The shape of the T5; `SentenceT5.from_preset` knows the published ones.
        pooling: "mean": the mean of the encoder's outputs over all tokens, including the
            end-of-sentence token. "first": the encoder's first output. "decoder": the decoder's
            output for its start token; only this pooling has a decoder.
        projection_dim: Width of the projection, which has no bias and is computed in float32. None:
            no projection, as in the raw models of the paper's section 6.1 and in m-ST5.
        normalize: Whether vectors are scaled to length 1.

    Call arguments:
        ids: int32 `[batch, length]`, 0 = padding, each row ending in the end-of-sentence token.
        training: Whether dropout acts.

    Returns:
        float32 `[batch, dimension]`.
    """

    config_type = T5Config
    packs = True
    presets = T5_PRESETS
    own_arguments: ClassVar = ("pooling", "projection_dim", "normalize")

    def __init__(
        self,
        config: T5Config,
        *,
        pooling: Pooling = "mean",
        projection_dim: int | None = PROJECTION_DIM,
        normalize: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        refuse_float16(self.dtype_policy)
        if pooling not in POOLINGS:
            raise ValueError(f"Unknown pooling: {pooling!r}. Expected one of {POOLINGS}.")
        self.config = config
        self.pooling = pooling
        self.projection_dim = projection_dim
        self.normalize = normalize
        policy = self.dtype_policy
        self.embedding = make_embedding(config, dtype=policy)
        self.encoder = T5Stack(config, dtype=policy)
        self.decoder = T5Stack(config, decoder=True, dtype=policy) if pooling == "decoder" else None
        self.projection: Any = None
        if projection_dim is not None:
            self.projection = keras.layers.Dense(
                projection_dim,
                use_bias=False,
                kernel_initializer=keras.initializers.LecunNormal(),
                dtype="float32",
                name="projection",
            )

    @property
    def dimension(self) -> int:
        """Dimension of the sentence vector."""
        return self.projection_dim or self.config.hidden_dim

    def build(self, _input_shape: Any = None) -> None:
        self.embedding.build((None, None))
        shape = (None, None, self.config.hidden_dim)
        for layer in (self.encoder, self.decoder):
            if layer is not None:
                layer.build(shape)
        if self.projection is not None:
            self.projection.build((None, self.config.hidden_dim))
        self.built = True

    def call(self, ids: Any, training: bool = False) -> Any:
        return self.encode_embedded(self.embedding(ids), ids, training=training)

    def encode_embedded(
        self, embedded: Any, ids: Any, *, packed: bool = False, training: bool = False
    ) -> Any:
        """Computes the sentence vectors from `embedded`, the token table's rows for `ids`.

        With `packed`, padding is not computed. Compiled programs do not allow this.
        """
        tokens = ops.not_equal(ids, PADDING_ID)
        encoded = self.encoder(embedded, tokens=tokens, packed=packed, training=training)
        vector = ops.cast(self._pool(encoded, tokens, training), "float32")
        if self.projection is not None:
            vector = self.projection(vector)
        return l2_normalize(vector, epsilon=_EPSILON) if self.normalize else vector

    def _pool(self, encoded: Any, tokens: Any, training: bool) -> Any:
        if self.pooling == "mean":
            return masked_mean(encoded, tokens)
        if self.decoder is None:
            return encoded[:, 0]
        start = self.embedding(ops.full((ops.shape(encoded)[0], 1), PADDING_ID, dtype="int32"))
        decoded = self.decoder(start, context=encoded, context_tokens=tokens, training=training)
        return decoded[:, 0]
