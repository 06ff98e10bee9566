"""Sentence-BERT: one vector for a sentence, or a pair, out of a BERT or RoBERTa."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import Any

import keras
from keras import ops

from use_st5.layers.attention import EXCLUDED
from use_st5.layers.l2_normalize import l2_normalize
from use_st5.layers.packing import Packing
from use_st5.layers.pooling import first_token, masked_max, masked_mean
from use_st5.layers.random_normal import RandomNormal, without_initial_values
from use_st5.models.bert.block import STDDEV, BertBlock, layer_norm
from use_st5.models.bert.config import (
    BERT_PRESETS,
    POOLINGS,
    BertConfig,
    Pooling,
    ProjectionConfig,
)
from use_st5.models.bert.pooler import Pooler
from use_st5.models.bert.word_head import MaskedWordHead

PADDING_ID = 0


@keras.saving.register_keras_serializable(package="use_st5")
class SentenceBert(keras.Model):
    """Sentence-BERT (Reimers and Gurevych 2019, arXiv 1908.10084), section 3.

    Args:
        config: The shape of the BERT; `SentenceBert.from_preset` knows the published ones.
        pooling: "mean" of the outputs over all tokens, [CLS] and [SEP] included; "cls", the output
            of the first token; "max" of each dimension over all tokens.
        dense: A dense layer behind the pooling, computed in float32; None for none.
        normalize: Whether vectors are scaled to length 1.
        head: Whether there is the masked language model's head, for `word_logits`.

    Attributes:
        pooler: The checkpoint's layer over the first token, which a cross-encoder begins with; None
            where there is none. The vectors do without it.

    Call arguments:
        ids: int32 `[batch, length]`, 0 = padding, the special tokens included. A pair is one row,
            `[CLS] A [SEP] B [SEP]`. What is longer than the position table is cut.
        training: Whether dropout acts.

    Returns:
        float32 `[batch, dimension]`.

    Raises:
        ValueError: The pooling is unknown.
    """

    def __init__(
        self,
        config: BertConfig,
        *,
        pooling: Pooling = "mean",
        dense: ProjectionConfig | None = None,
        normalize: bool = False,
        head: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if pooling not in POOLINGS:
            raise ValueError(f"Unknown pooling: {pooling!r}. Expected one of {POOLINGS}.")
        self.config = config
        self.pooling = pooling
        self.dense = dense
        self.normalize = normalize
        policy = self.dtype_policy
        self.embedding = _table(config.vocabulary_size, config, "embedding", policy)
        self.position_embedding = _table(config.max_positions, config, "position_embedding", policy)
        self.type_embedding = _table(config.num_token_types, config, "type_embedding", policy)
        self.embedding_norm = layer_norm(config, "embedding_norm")
        self.blocks = [
            BertBlock(config, dtype=policy, name=f"block_{number}")
            for number in range(config.num_layers)
        ]
        self.dropout_layer = keras.layers.Dropout(config.dropout, dtype="float32")
        self.projection: Any = None
        if dense is not None:
            self.projection = keras.layers.Dense(
                dense.units,
                use_bias=dense.use_bias,
                activation=dense.activation,
                dtype="float32",
                name="projection",
            )
        self.head = MaskedWordHead(config, dtype=policy, name="head") if head else None
        self.pooler: Pooler | None = None

    @classmethod
    def from_preset(
        cls,
        name: str,
        *,
        pooling: Pooling = "mean",
        dense: ProjectionConfig | None = None,
        normalize: bool = False,
        head: bool = False,
        dtype: Any = None,
        **changes: Any,
    ) -> SentenceBert:
        """A freshly initialised model of a published shape.

        Args:
            name: A key of `BERT_PRESETS`.
            pooling: As in the constructor.
            dense: As in the constructor.
            normalize: As in the constructor.
            head: As in the constructor.
            dtype: Keras dtype policy, such as "mixed_bfloat16".
            **changes: Fields of `BertConfig` that differ from the preset's.

        Raises:
            ValueError: The preset is unknown.
        """
        if name not in BERT_PRESETS:
            raise ValueError(f"Unknown preset: {name!r}. Expected one of {sorted(BERT_PRESETS)}.")
        return cls(
            dataclasses.replace(BERT_PRESETS[name], **changes),
            pooling=pooling,
            dense=dense,
            normalize=normalize,
            head=head,
            dtype=dtype,
        )

    @property
    def dimension(self) -> int:
        """Dimension of the sentence vector."""
        return self.dense.units if self.dense else self.config.hidden_dim

    def build(self, _input_shape: Any = None) -> None:
        for table in (self.embedding, self.position_embedding, self.type_embedding):
            table.build((None, None))
        for layer in (self.embedding_norm, *self.blocks):
            layer.build((None, None, self.config.hidden_dim))
        for layer in (self.projection, self.head):
            if layer is not None:
                layer.build((None, self.config.hidden_dim))
        self.built = True

    def call(self, ids: Any, training: bool = False) -> Any:
        ids = ids[:, : self.config.max_positions]
        return self.encode_embedded(self.embedding(ids), ids, training=training)

    def encode_embedded(
        self, embedded: Any, ids: Any, *, packed: bool = False, training: bool = False
    ) -> Any:
        """What follows the table.

        Args:
            embedded: `[batch, length, hidden_dim]`, the rows of the tokens.
            ids: int32 `[batch, length]`, 0 = padding.
            packed: Whether the tokens alone are computed, which no compiled program can.
            training: Whether dropout acts.

        Returns:
            float32 `[batch, dimension]`.
        """
        outputs, tokens = self._outputs(embedded, ids, training, packed)
        vector = self._pool(outputs, tokens)
        if self.projection is not None:
            vector = self.projection(vector)
        return l2_normalize(vector) if self.normalize else vector

    def token_vectors(self, ids: Any, training: bool = False) -> Any:
        """The last block's outputs.

        Args:
            ids: As in the call.
            training: Whether dropout acts.

        Returns:
            float32 `[batch, length, hidden_dim]`; rows at padding hold numbers without meaning.
        """
        ids = ids[:, : self.config.max_positions]
        return self._outputs(self.embedding(ids), ids, training)[0]

    def first_blocks(self, number: int) -> SentenceBert:
        """A model of the first blocks alone, of the same weights: what they give is pooled.

        Args:
            number: Of blocks, 0 to `config.num_layers`.

        Raises:
            ValueError: There are not so many.
        """
        if not 0 <= number <= self.config.num_layers:
            raise ValueError(f"Expected 0 to {self.config.num_layers} blocks, received {number}.")
        return self._blocks_in(
            dataclasses.replace(self.config, num_layers=number),
            pooling=self.pooling,
            normalize=self.normalize,
        )

    def pooled(self, pooling: Pooling, *, head: bool = False) -> SentenceBert:
        """A model of the same weights, pooled otherwise and neither projected nor scaled.

        A cross-encoder is begun with it, and DefSent.

        Args:
            pooling: "mean", "cls" or "max".
            head: Whether it has the masked language model's head: this model's, or a fresh one
                whose transform gives what it is given.

        Raises:
            ValueError: The pooling is unknown.
        """
        model = self._blocks_in(self.config, pooling=pooling, normalize=False, head=head)
        model.pooler = self.pooler
        if model.head is not None and self.head is not None:
            model.head.set_weights(self.head.get_weights())
        elif model.head is not None:
            # Chosen on definitions that do not train: docs/sbert_and_defsent.md has the figures.
            model.head.transform.kernel.assign(keras.ops.eye(self.config.hidden_dim))
        return model

    def _blocks_in(
        self, config: BertConfig, *, pooling: Pooling, normalize: bool, head: bool = False
    ) -> SentenceBert:
        model = SentenceBert(
            config, pooling=pooling, normalize=normalize, head=head, dtype=self.dtype_policy
        )
        with contextlib.nullcontext() if head else without_initial_values():
            model.build()
        for part in ("embedding", "position_embedding", "type_embedding", "embedding_norm"):
            getattr(model, part).set_weights(getattr(self, part).get_weights())
        for target, source in zip(model.blocks, self.blocks, strict=False):
            target.set_weights(source.get_weights())
        return model

    def word_logits(self, vectors: Any) -> Any:
        """How much each word of the vocabulary is what vectors stand for.

        Args:
            vectors: `[..., hidden_dim]`: of texts, or of tokens.

        Returns:
            float32 `[..., vocabulary_size]`.

        Raises:
            ValueError: The model has no head, or the vectors are of another width.
        """
        if self.head is None:
            raise ValueError(
                "Expected a model with the masked language model's head, this one has none: build "
                "it with head=True."
            )
        if vectors.shape[-1] != self.config.hidden_dim:
            raise ValueError(
                f"Expected vectors of {self.config.hidden_dim} dimensions, which the head reads, "
                f"received {vectors.shape[-1]}. Leave the dense layer behind the pooling out."
            )
        return self.head(vectors, self.embedding.embeddings)

    def compute_output_shape(self, input_shape: tuple[int | None, ...]) -> tuple[int | None, int]:
        return (input_shape[0], self.dimension)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "config": dataclasses.asdict(self.config),
            "pooling": self.pooling,
            "dense": dataclasses.asdict(self.dense) if self.dense else None,
            "normalize": self.normalize,
            "head": self.head is not None,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> SentenceBert:
        dense = config.pop("dense")
        return cls(
            BertConfig(**config.pop("config")),
            dense=dense and ProjectionConfig(**dense),
            **config,
        )

    def _outputs(
        self, embedded: Any, ids: Any, training: bool, packed: bool = False
    ) -> tuple[Any, Any]:
        """The last block's outputs, and which of them are of tokens."""
        limit = self.config.max_positions
        embedded, ids = embedded[:, :limit], ids[:, :limit]
        tokens = ops.not_equal(ids, PADDING_ID)
        positions = self.position_embedding.embeddings[: ops.shape(ids)[1]]
        x = ops.cast(embedded, "float32") + ops.cast(self._of_types(ids), "float32")
        x = x + ops.cast(positions, "float32")
        packing = Packing.of(tokens, self.config.num_heads) if packed else None
        x = self.embedding_norm(x if packing is None else packing.pack(x))
        x = self.dropout_layer(x, training=training)
        # Added once to each score, which costs less than to choose among them in every block.
        bias = ops.expand_dims(ops.where(tokens, 0.0, EXCLUDED), (1, 2))
        for block in self.blocks:
            x = block(x, bias=bias, packing=packing, training=training)
        return x if packing is None else packing.unpack(x), tokens

    def _of_types(self, ids: Any) -> Any:
        """The rows of the token types; broadcasts to `[batch, length, hidden_dim]`."""
        # Sliced once, since each slice reads the variable.
        table = self.type_embedding.embeddings[:2]
        separator = self.config.separator_id
        if separator is None or self.config.num_token_types < 2:
            return table[0]
        ends = ops.cast(ops.equal(ids, separator), "int32")
        second = ops.greater(ops.cumsum(ends, axis=1) - ends, 0)
        return ops.where(ops.expand_dims(second, -1), table[1], table[0])

    def _pool(self, outputs: Any, tokens: Any) -> Any:
        if self.pooling == "cls":
            return first_token(outputs)
        return (masked_max if self.pooling == "max" else masked_mean)(outputs, tokens)


def _table(rows: int, config: BertConfig, name: str, dtype: Any) -> keras.layers.Embedding:
    initial = RandomNormal(stddev=STDDEV)
    return keras.layers.Embedding(
        rows, config.hidden_dim, embeddings_initializer=initial, dtype=dtype, name=name
    )
