"""The mean of the rows of a text's tokens, without a Transformer."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from use_st5.layers.l2_normalize import l2_normalize
from use_st5.layers.pooling import masked_mean
from use_st5.layers.random_normal import RandomNormal

PADDING_ID = 0
# The two ids of a text that are no tokens of it: `start` and `separator`.
FRAME = 2


@keras.saving.register_keras_serializable(package="use_st5")
class StaticEmbedding(keras.Model):
    """The mean of a text's rows in a table of tokens, such as static-retrieval-mrl-en-v1.

    It is the module `StaticEmbedding` of sentence-transformers. The special tokens around a text
    are not in the mean.

    Args:
        num_embeddings: Rows of the table.
        dimension: Width of the table and of the sentence vector.
        normalize: Whether vectors are scaled to length 1.

    Call arguments:
        ids: int32 `[batch, length]`, 0 = padding, the special tokens included.

    Returns:
        float32 `[batch, dimension]`; zeros for a text without tokens.
    """

    def __init__(
        self, num_embeddings: int, dimension: int, *, normalize: bool = False, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.num_embeddings = num_embeddings
        self.dimension = dimension
        self.normalize = normalize
        self.embedding = keras.layers.Embedding(
            num_embeddings,
            dimension,
            embeddings_initializer=RandomNormal(stddev=dimension**-0.5),
            dtype=self.dtype_policy,
            name="embedding",
        )

    def build(self, _input_shape: Any = None) -> None:
        self.embedding.build((None, None))
        self.built = True

    def call(self, ids: Any, training: bool = False) -> Any:
        return self.encode_embedded(self.embedding(ids), ids)

    def encode_embedded(self, embedded: Any, ids: Any) -> Any:
        """What follows the table, whose rows of `ids` are given: the sentence vectors."""
        # Behind the first id, those that another one follows are tokens: the last one is special.
        tokens = ops.not_equal(ids[:, FRAME:], PADDING_ID)
        return self.scaled(masked_mean(embedded[:, 1:-1], tokens))

    def scaled(self, mean: Any) -> Any:
        """The sentence vectors of means, float32 `[batch, dimension]`."""
        return l2_normalize(mean) if self.normalize else mean

    def compute_output_shape(self, input_shape: tuple[int | None, ...]) -> tuple[int | None, int]:
        return (input_shape[0], self.dimension)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "num_embeddings": self.num_embeddings,
            "dimension": self.dimension,
            "normalize": self.normalize,
        }
