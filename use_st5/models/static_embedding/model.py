"""The mean of the rows of a text's tokens, without a Transformer."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from use_st5.layers.pooling import l2_normalize, masked_mean
from use_st5.layers.random_normal import RandomNormal

PADDING_ID = 0
# Number of ids in a row that are not tokens of the text: `start` and `separator`.
FRAME = 2


@keras.saving.register_keras_serializable(package="use_st5")
class StaticEmbedding(keras.Model):
    """The mean of the table rows of a text's tokens, as in static-retrieval-mrl-en-v1.

    It is the module `StaticEmbedding` of sentence-transformers. The mean does not include the
    special tokens around a text.

    Args:
        num_embeddings: Rows of the table.
        dimension: Width of the table and of the sentence vector.
        normalize: Whether vectors are scaled to length 1.
        ignored_id: An id that the mean does not include, model2vec's unknown word; 0: none.

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
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.num_embeddings = num_embeddings
        self.dimension = dimension
        self.normalize = normalize
        self.ignored_id = ignored_id
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
        """Computes the sentence vectors from `embedded`, the table's rows for `ids`."""
        # After the first id, each id with another one after it is a token; the last is special.
        tokens = ops.not_equal(ids[:, FRAME:], PADDING_ID)
        if self.ignored_id:
            tokens = ops.logical_and(tokens, ops.not_equal(ids[:, 1:-1], self.ignored_id))
        return self.scaled(masked_mean(embedded[:, 1:-1], tokens))

    def scaled(self, mean: Any) -> Any:
        """Turns means into sentence vectors, float32 `[batch, dimension]`."""
        return l2_normalize(mean) if self.normalize else mean

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "num_embeddings": self.num_embeddings,
            "dimension": self.dimension,
            "normalize": self.normalize,
            # Written only if there is one: earlier versions do not know this field.
            **({"ignored_id": self.ignored_id} if self.ignored_id else {}),
        }
