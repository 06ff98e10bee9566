"""The mean of the rows of a text's tokens, without a Transformer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from use_st5.layers.deep_averaging import ResidualFeedForward
from use_st5.layers.pooling import l2_normalize, masked_mean
from use_st5.layers.random_normal import RandomNormal

PADDING_ID = 0
# Number of ids in a row that are not tokens of the text: `start` and `separator`.
FRAME = 2


@keras.saving.register_keras_serializable(package="use_st5")
class StaticEmbedding(keras.Model):
    """The mean of the table rows of a text's tokens, as in static-retrieval-mrl-en-v1.

    It is the module `StaticEmbedding` of sentence-transformers. The mean does not include the
    special tokens around a text. With `hidden_dims` it is a USE-DAN over pieces of words: the mean
    goes through dense layers in residual blocks (`use_st5.layers.ResidualFeedForward`).

    Args:
        num_embeddings: Rows of the table.
        dimension: Width of the table, and of the sentence vector if there are no dense layers.
        normalize: Whether vectors are scaled to length 1.
        ignored_id: An id that the mean does not include, model2vec's unknown word; 0: none.
        hidden_dims: Widths of dense layers behind the mean, two to a block; the last one is the
            dimension of the sentence vector.
        activation: Keras name of the activation of the dense layers.

    Call arguments:
        ids: int32 `[batch, length]`, 0 = padding, including the special tokens.

    Returns:
        float32 `[batch, dimension]`; zeros for a text without tokens.
    """

    def __init__(
        self,
        num_embeddings: int,
        dimension: int,
        *,
        normalize: bool = False,
        ignored_id: int = 0,
        hidden_dims: Sequence[int] = (),
        activation: str = "tanh",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.num_embeddings = num_embeddings
        self.dimension = hidden_dims[-1] if hidden_dims else dimension
        self.normalize = normalize
        self.ignored_id = ignored_id
        self.hidden_dims = tuple(hidden_dims)
        self.activation = activation
        self.embedding = keras.layers.Embedding(
            num_embeddings,
            dimension,
            embeddings_initializer=RandomNormal(stddev=dimension**-0.5),
            dtype=self.dtype_policy,
            name="embedding",
        )
        self.network = None
        if hidden_dims:
            layer = ResidualFeedForward(
                hidden_dims, activation=activation, dtype=self.dtype_policy, name="feed_forward"
            )
            self.network = keras.Sequential([layer], name="network")
            self.network.dtype_policy = self.dtype_policy  # Sequential takes no dtype.

    def build(self, _input_shape: Any = None) -> None:
        self.embedding.build((None, None))
        if self.network is not None:
            self.network.build((None, self.embedding.output_dim))
        self.built = True

    def call(self, ids: Any, training: bool = False) -> Any:
        return self.encode_embedded(self.embedding(ids), ids)

    def encode_embedded(self, embedded: Any, ids: Any) -> Any:
        """Computes the sentence vectors from `embedded`, the table's rows for `ids`."""
        # After the first id, each id with another one after it is a token; the last is special.
        tokens = ops.not_equal(ids[:, FRAME:], PADDING_ID)
        if self.ignored_id:
            tokens = ops.logical_and(tokens, ops.not_equal(ids[:, 1:-1], self.ignored_id))
        return self.scaled(masked_mean(embedded[:, 1:-1], tokens))

    def scaled(self, mean: Any) -> Any:
        """Turns means into sentence vectors, float32 `[batch, dimension]`."""
        if self.network is not None:
            mean = ops.cast(self.network(mean), "float32")
        return l2_normalize(mean) if self.normalize else mean

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "num_embeddings": self.num_embeddings,
            "dimension": self.embedding.output_dim,
            "normalize": self.normalize,
            # Written only if there are any: earlier versions do not know these fields.
            **({"ignored_id": self.ignored_id} if self.ignored_id else {}),
            **(
                {"hidden_dims": self.hidden_dims, "activation": self.activation}
                if self.hidden_dims
                else {}
            ),
        }
