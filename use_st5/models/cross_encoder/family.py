"""The family of cross-encoders; the family of the encoder below the head does most of the work."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar

import tensorflow as tf

from use_st5.convert.checkpoint import Checkpoint
from use_st5.convert.tokenizer_files import marks_second_text
from use_st5.convert.weights import (
    RenamedSource,
    Target,
    WeightSource,
    assign_weights,
    check_shapes,
)
from use_st5.export.encoder_graph import TEXTS, EncoderGraph, graph_of, network_of
from use_st5.export.stored_weights import raw_variables
from use_st5.layers.lora_dense import LoRADense
from use_st5.models.cross_encoder.model import CrossEncoderModel
from use_st5.models.family import Family, family_for, family_named, family_of
from use_st5.tokenizers.framed_tokenizer import FramedTokenizer
from use_st5.tokenizers.tokenizer import PairTokenizer, Tokenizer

# Both heads of transformers read the output of the first token.
_POOLING = "cls"
_CLASS = "ForSequenceClassification"
# `model_type` → the names of the head's tanh layer and last layer.
_HEADS = {
    "bert": ("bert.pooler.dense", "classifier"),
    **dict.fromkeys(
        ("roberta", "xlm-roberta", "mpnet"), ("classifier.dense", "classifier.out_proj")
    ),
}


class CrossEncoderFamily(Family):
    """An encoder of any family that reads two texts as one row of ids and returns a number."""

    name = "cross_encoder"
    model_types = (CrossEncoderModel,)
    presets: ClassVar = {}
    tokenizers: ClassVar = {}
    precisions = ("float32", "int8")
    inputs = 2
    poolings = (_POOLING,)
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
            name = type(tokenizer).__name__
            raise ValueError(f"Expected a tokenizer of pairs (padded_pairs), received a {name}.")
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

        def with_head(embed: Callable[..., tf.Tensor]) -> Callable[..., tf.Tensor]:
            return lambda ids, training: head(embed(ids, training), training)

        embed_tokens = with_head(encoder_graph.embed_tokens)
        trained = [variable for variable in model.head_variables if variable.trainable]
        return replace(
            encoder_graph,
            embed_text=lambda one, two, training: embed_tokens(preprocess(one, two), training),
            embed_ids=with_head(encoder_graph.embed_ids),
            embed_tokens=embed_tokens,
            preprocess=preprocess,
            token_counts=encoder_graph.token_counts and tokenizer.pair_token_counts,
            dimension=1,
            variables=[*encoder_graph.variables, *raw_variables(model.head_variables)],
            trainable_variables=[*encoder_graph.trainable_variables, *raw_variables(trained)],
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
            raise ValueError(f"Expected the configuration of a {self.name}.") from error
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
        head = _HEADS.get(str(checkpoint.settings.get("model_type")))
        architectures = checkpoint.settings.get("architectures") or [_CLASS]
        if head is None or not any(str(name).endswith(_CLASS) for name in architectures):
            return False
        return {f"{layer}.weight" for layer in head} <= checkpoint.source.shapes().keys()

    def read(
        self, checkpoint: Checkpoint, *, dtype: Any = None
    ) -> tuple[CrossEncoderModel, Tokenizer]:
        """A cross-encoder with one label; its head (pooler and classifier) stays float32."""
        hidden, logit = _HEADS[checkpoint.settings["model_type"]]
        names = {f"{layer}.{part}" for layer in (hidden, logit) for part in ("weight", "bias")}
        source = _only(checkpoint.source, names.__contains__)
        labels = (*source.shapes()[f"{logit}.weight"], 0)[0]
        if labels != 1:
            where = checkpoint.where
            raise ValueError(f"{where}: expected one label, the score, found {labels} labels.")
        rest = _only(checkpoint.source, lambda name: name not in names)
        below = replace(checkpoint, source=rest, pooling=_POOLING)
        encoder, tokenizer = family_for(below).read(below, dtype=dtype)
        assert isinstance(tokenizer, FramedTokenizer)  # as all models of `_HEADS` have
        chosen = checkpoint.vocabulary
        folder = chosen.parent if chosen else checkpoint.beside
        types = encoder.config.num_token_types
        if not marks_second_text(folder, tokenizer, token_types=types):
            encoder.config = replace(encoder.config, separator_id=None)
        rate = checkpoint.settings.get("classifier_dropout")
        model = CrossEncoderModel(
            encoder, dropout=encoder.config.dropout if rate is None else float(rate)
        )
        model.build()
        targets = {}
        for name, layer in ((hidden, model.hidden), (logit, model.logit)):
            targets[f"{name}.weight"] = Target(layer.kernel, transposed=True)
            targets[f"{name}.bias"] = Target(layer.bias)
        check_shapes({name: target.stored_shape() for name, target in targets.items()}, source)
        assign_weights(targets, source)
        return model, tokenizer


def _only(source: WeightSource, wanted: Callable[[str], bool]) -> WeightSource:
    return RenamedSource(source, {name: name for name in source.shapes() if wanted(name)})


FAMILY = CrossEncoderFamily()
