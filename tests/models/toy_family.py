"""A family of encoders that use_st5 does not have, in one file: averaged character tri-grams.

A user writes such a file for an own encoder. The tests of all families run with it, too; nothing
outside this file knows it.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, ClassVar, Self

import keras
import tensorflow as tf
from keras import ops

from use_st5.export.encoder_graph import EncoderGraph, padded_graph
from use_st5.export.stored_weights import stored_table
from use_st5.layers.lora_dense import LoRADense
from use_st5.layers.pooling import l2_normalize, masked_mean
from use_st5.models.family import Family, register
from use_st5.tokenizers.tokenizer import Tokenizer


@dataclasses.dataclass(frozen=True)
class Buckets:
    """The vocabulary of tri-grams: the number of buckets that they are hashed into."""

    size: int


class TrigramTokenizer(tf.Module):
    """The tri-grams of each text, spaces around it, as the ids of hash buckets."""

    kind: ClassVar[str] = "trigrams"

    def __init__(self, buckets: int = 64) -> None:
        super().__init__()
        self.vocabulary = Buckets(buckets)

    def padded(self, text: tf.Tensor, max_tokens: int | None = None) -> tf.Tensor:
        """One row of ids for each text, 0 = padding."""
        letters = tf.strings.unicode_split(
            tf.strings.join(["  ", text, " "]), "UTF-8", errors="replace"
        )
        grams = tf.strings.ngrams(letters, 3, pad_values=("", ""), separator="")
        ids = tf.strings.to_hash_bucket_fast(grams, self.vocabulary.size - 1) + 1
        ids = ids if max_tokens is None else ids[:, :max_tokens]
        return tf.cast(ids.to_tensor(), tf.int32)

    def token_ids(self, text: tf.Tensor, max_tokens: int) -> tf.Tensor:
        """The ids in rows of the length `max_tokens`."""
        ids = self.padded(text, max_tokens)
        return tf.pad(ids, [[0, 0], [0, max_tokens - tf.shape(ids)[1]]])

    def token_counts(self, text: tf.Tensor) -> tf.Tensor:
        """The number of tri-grams of each text."""
        return tf.math.count_nonzero(self.padded(text), axis=1, dtype=tf.int32)

    @classmethod
    def from_assets(cls, folder: Path) -> Self:
        """Reads no file: the ids are computed."""
        return cls()


@dataclasses.dataclass(frozen=True)
class TrigramConfig:
    """Shape of a `TrigramEncoder`."""

    num_embeddings: int = 64
    embedding_dim: int = 6
    dimension: int = 8


@keras.saving.register_keras_serializable(package="toy")
class TrigramEncoder(keras.Model):
    """The mean of tri-grams' embeddings through a dense layer, scaled to length 1."""

    def __init__(self, config: TrigramConfig, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.config = config
        self.dimension = config.dimension
        self.embedding = keras.layers.Embedding(config.num_embeddings, config.embedding_dim)
        self.dense = LoRADense(config.dimension, name="dense")

    def build(self, _input_shape: Any = None) -> None:
        self.embedding.build((None, None))
        self.dense.build((None, self.config.embedding_dim))
        self.built = True

    def call(self, ids: Any, training: bool = False) -> Any:
        return self.encode_embedded(self.embedding(ids), ids, training=training)

    def encode_embedded(self, embedded: Any, ids: Any, *, training: bool = False) -> Any:
        """The layers after the embedding table."""
        return l2_normalize(
            self.dense(masked_mean(embedded, ops.greater(ids, 0)), training=training)
        )

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "config": dataclasses.asdict(self.config)}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> TrigramEncoder:
        return cls(TrigramConfig(**config.pop("config")), **config)


class TrigramFamily(Family):
    """Everything that use_st5 must know about the family."""

    name = "toy_trigrams"
    model_types = (TrigramEncoder,)
    presets: ClassVar = {"toy_trigrams_small": TrigramConfig()}
    tokenizers: ClassVar = {TrigramTokenizer.kind: TrigramTokenizer}
    precisions = ("float32", "int8")
    lora_targets: ClassVar = {"query_value": ("dense",), "all_linear": ("dense",)}

    def usual_tokenizer(self) -> TrigramTokenizer:
        """Tri-grams need no vocabulary."""
        return TrigramTokenizer()

    def fresh(
        self, preset: str, tokenizer: Tokenizer, *, dtype: Any = None, **changes: Any
    ) -> TrigramEncoder:
        """A model of a named shape."""
        changes.setdefault("num_embeddings", tokenizer.vocabulary.size)
        config = dataclasses.replace(self.presets[preset], **changes)
        model = TrigramEncoder(config, dtype=dtype)
        model.build()
        return model

    def graph(
        self, model: TrigramEncoder, tokenizer: Tokenizer, *, precision: str, max_length: int | None
    ) -> EncoderGraph:
        """The graph over padded ids; table and kernel are stored apart."""
        table = stored_table(model.embedding.embeddings, precision)
        kernels = [model.dense.kernel] if precision == "int8" else []
        return padded_graph(model, tokenizer, table=table, kernels=kernels, max_length=max_length)

    def lora_layers(self, model: TrigramEncoder) -> dict[str, LoRADense]:
        """The one dense layer."""
        return {"dense": model.dense}


FAMILY = register(TrigramFamily())
