"""The family of cross-encoders; the family of the encoder below the head does most of the work."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import tensorflow as tf

from use_st5.convert.checkpoint import Checkpoint
from use_st5.export.encoder_graph import TEXTS, EncoderGraph, graph_of, network_of
from use_st5.export.stored_weights import raw_variables
from use_st5.layers.lora_dense import LoRADense
from use_st5.models.cross_encoder import checkpoint as checkpoints
from use_st5.models.cross_encoder.model import CrossEncoderModel
from use_st5.models.family import Family, family_named, family_of
from use_st5.tokenizers.tokenizer import PairTokenizer, Tokenizer


class CrossEncoderFamily(Family):
    """An encoder of any family that reads two texts as one row of ids and returns a number."""

    name = "cross_encoder"
    model_types = (CrossEncoderModel,)
    presets: ClassVar = {}
    tokenizers: ClassVar = {}
    precisions = ("float32", "int8")
    inputs = 2
    poolings = (checkpoints.POOLING,)
    lora_targets: ClassVar = {
        "query_value": ("query", "value"),
        "all_linear": ("query", "key", "value", "output", "inner", "linear", "outer"),
    }

    def graph(
        self,
        model: CrossEncoderModel,
        tokenizer: Tokenizer,
        *,
        precision: str,
        max_length: int | None,
    ) -> EncoderGraph:
        """The encoder's graph with the head after it; it takes pairs of texts."""
        if not isinstance(tokenizer, PairTokenizer):
            raise ValueError(
                "Expected a tokenizer that puts two texts into one row of ids (padded_pairs), as "
                f"those of BERT and RoBERTa do, received a {type(tokenizer).__name__}."
            )
        encoder_graph = family_of(model.encoder).graph(
            model.encoder, tokenizer, precision=precision, max_length=max_length
        )
        vectors = tf.TensorSpec([None, model.encoder.dimension], tf.float32)
        head = network_of(
            lambda vectors, training: model.score(vectors, training=training), [vectors], model
        )
        preprocess = graph_of(
            lambda first, second: tokenizer.padded_pairs(first, second, encoder_graph.max_length),
            TEXTS[2],
        )

        def embed_ids(ids: tf.Tensor, training: bool) -> tf.Tensor:
            return head(encoder_graph.embed_ids(ids, training), training)

        def embed_tokens(ids: tf.Tensor, training: bool) -> tf.Tensor:
            return head(encoder_graph.embed_tokens(ids, training), training)

        def embed_text(first: tf.Tensor, second: tf.Tensor, training: bool) -> tf.Tensor:
            return embed_tokens(preprocess(first, second), training)

        head_variables = raw_variables(model.head_variables)
        trained_ids = {id(each) for each in raw_variables(model.trainable_variables)}
        return EncoderGraph(
            embed_text=embed_text,
            embed_ids=embed_ids,
            embed_tokens=embed_tokens,
            preprocess=preprocess,
            token_counts=None if encoder_graph.max_length is None else tokenizer.pair_token_counts,
            dimension=1,
            max_length=encoder_graph.max_length,
            precision=encoder_graph.precision,
            variables=[*encoder_graph.variables, *head_variables],
            trainable_variables=[
                *encoder_graph.trainable_variables,
                *(each for each in head_variables if id(each) in trained_ids),
            ],
            regularization_losses=encoder_graph.regularization_losses,
            tracked=encoder_graph.tracked,
            texts=2,
        )

    def config(self, model: CrossEncoderModel) -> dict[str, Any]:
        """The head's dropout, and the encoder's family and configuration."""
        family = family_of(model.encoder)
        encoder = {"family": family.name, "config": family.config(model.encoder)}
        return {"encoder": encoder, "dropout": model.dropout}

    def restore(self, config: Mapping[str, Any], *, dtype: Any = None) -> CrossEncoderModel:
        """Restores the encoder through its family, and adds the head."""
        try:
            record = config["encoder"]
            encoder = family_named(record["family"]).restore(record["config"], dtype=dtype)
            model = CrossEncoderModel(encoder, dropout=config["dropout"])
        except (KeyError, TypeError) as error:
            raise ValueError(
                f"Expected the configuration of the family {self.name!r}, received "
                f"{dict(config)} ({type(error).__name__}: {error}). Export the model again."
            ) from error
        model.build()
        return model

    def max_tokens(self, model: CrossEncoderModel) -> int | None:
        """The limit of the encoder."""
        return family_of(model.encoder).max_tokens(model.encoder)

    def lora_layers(self, model: CrossEncoderModel) -> dict[str, LoRADense]:
        """The layers of the encoder; the head gets no adapters."""
        return family_of(model.encoder).lora_layers(model.encoder)

    def lora_base(self, model: CrossEncoderModel) -> dict[str, Any]:
        """The result of the encoder's family."""
        return family_of(model.encoder).lora_base(model.encoder)

    def can_read(self, checkpoint: Checkpoint) -> bool:
        """Whether a checkpoint contains a BERT or RoBERTa that classifies texts."""
        return checkpoints.can_read(checkpoint)

    def read(
        self,
        checkpoint: Checkpoint,
        *,
        pooling: str | None = None,
        vocabulary: Path | None = None,
        dtype: Any = None,
        on_tensor: Callable[[str], None] = lambda name: None,
    ) -> tuple[CrossEncoderModel, Tokenizer]:
        """A cross-encoder; it has only one pooling."""
        return checkpoints.read(checkpoint, vocabulary=vocabulary, dtype=dtype, on_tensor=on_tensor)


FAMILY = CrossEncoderFamily()
