"""The family of ModernBERT: that of BERT, with its own model and checkpoints."""

from __future__ import annotations

import re
from typing import Any, ClassVar, Literal

import msgspec
import numpy as np
from msgspec import field

from use_st5.convert.checkpoint import Checkpoint, shape_from
from use_st5.convert.weights import (
    RenamedSource,
    Target,
    assign_weights,
    check_layers,
    check_shapes,
    check_weights,
)
from use_st5.io.records import Epsilon, Positive, Rate, RotaryBase, Tokens
from use_st5.layers.random_normal import without_initial_values
from use_st5.models.bert.checkpoint import assign_layers, layers_of, padding_first
from use_st5.models.bert.family import BertFamily, read_framed_tokenizer
from use_st5.models.bert.model import POOLINGS, SentenceBert
from use_st5.models.modernbert.model import (
    MODERNBERT_PRESETS,
    ModernBertConfig,
    SentenceModernBert,
)
from use_st5.tokenizers.byte_pair_tokenizer import BytePairTokenizer
from use_st5.tokenizers.framed_tokenizer import FramedTokenizer

_LINEAR = ("query", "key", "value", "output", "inner", "linear", "outer")
_WORDS = "embeddings.tok_embeddings.weight"
# The masked language model's head, and the layers of classifiers.
_UNREAD = re.compile(r"(head|decoder|classifier)\..*")
# Fused matrix → the roles of its parts, in the order of its rows.
_FUSED = {"attn.Wqkv": ("query", "key", "value"), "mlp.Wi": ("inner", "linear")}
_SINGLE = {"attn.Wo": "output", "mlp.Wo": "outer"}
_REMEDY = "Give the folder of a model as transformers saves it."


class ModernBertFamily(BertFamily):
    """ModernBERT (`SentenceModernBert`)."""

    name = "modernbert"
    model_types = (SentenceModernBert,)
    presets = MODERNBERT_PRESETS
    tokenizers: ClassVar = {BytePairTokenizer.kind: BytePairTokenizer}
    reads = ("ModernBERT",)
    lora_targets: ClassVar = {"query_value": ("query", "value"), "all_linear": _LINEAR}

    def word_model(self, model: SentenceBert, *, pooling: str | None = None) -> None:
        """Returns None, because the masked language model's head is not read."""
        return

    def can_read(self, checkpoint: Checkpoint) -> bool:
        """Whether a checkpoint contains a ModernBERT."""
        return checkpoint.settings.get("model_type") == "modernbert"

    def read(
        self, checkpoint: Checkpoint, *, dtype: Any = None
    ) -> tuple[SentenceModernBert, FramedTokenizer]:
        """A ModernBERT with the modules of sentence-transformers, whose outputs are pooled."""
        tokenizer = read_framed_tokenizer(checkpoint, "ModernBERT", (BytePairTokenizer,))
        config, modules = _config(checkpoint), checkpoint.modules
        names = {
            re.sub(r"^model\.", "", name): name
            for name in checkpoint.source.shapes()
            if not _UNREAD.fullmatch(name)
        }
        first_rows = padding_first(tokenizer.padding_id, _WORDS)
        source = RenamedSource(checkpoint.source, names, first_rows=first_rows)
        check_shapes(_stored_shapes(config), source)
        model = SentenceModernBert(
            config,
            pooling=checkpoint.pooling or POOLINGS[0],
            **layers_of(modules, config.hidden_dim),
            normalize=modules is not None and modules.normalize,
            dtype=dtype,
        )
        with without_initial_values():
            model.build()
        targets = {
            _WORDS: Target(model.embedding.embeddings),
            "embeddings.norm.weight": Target(model.embedding_norm.gamma),
            "final_norm.weight": Target(model.final_norm.gamma),
        }
        for number, block in enumerate(model.blocks):
            layer, linear = f"layers.{number}", block.linear_layers
            for name, role in _SINGLE.items():
                targets[f"{layer}.{name}.weight"] = Target(linear[role].kernel, transposed=True)
            targets[f"{layer}.mlp_norm.weight"] = Target(block.output_norm.gamma)
            if block.attention_norm is not None:
                targets[f"{layer}.attn_norm.weight"] = Target(block.attention_norm.gamma)
            for fused, roles in _FUSED.items():
                matrix = source.read(f"{layer}.{fused}.weight")
                check_weights(matrix, f"{layer}.{fused}.weight", source)
                for role, part in zip(roles, np.split(matrix, len(roles)), strict=True):
                    kernel = linear[role].kernel
                    kernel.assign(np.asarray(part.T, kernel.dtype))
        assign_weights(targets, source)
        assign_layers(modules, model)
        return model, tokenizer


class _Settings(msgspec.Struct):
    """Settings of a ModernBERT in `config.json` as fields of its config, usual ones by default."""

    vocabulary_size: Positive = field(name="vocab_size")
    hidden_dim: Positive = field(name="hidden_size")
    num_layers: Positive = field(name="num_hidden_layers")
    num_heads: Positive = field(name="num_attention_heads")
    intermediate_dim: Positive = field(name="intermediate_size")
    max_positions: Tokens = field(name="max_position_embeddings", default=8192)
    activation: Literal["gelu"] = field(name="hidden_activation", default="gelu")
    layer_norm_epsilon: Epsilon = field(name="norm_eps", default=1e-5)
    norm_bias: Literal[False] = False
    attention_bias: Literal[False] = False
    mlp_bias: Literal[False] = False
    global_every: Positive = field(name="global_attn_every_n_layers", default=3)
    local_window: Tokens = field(name="local_attention", default=128)
    # Before version 5, transformers writes two numbers; since then a record, and layer types.
    global_theta: RotaryBase = field(name="global_rope_theta", default=160_000.0)
    local_theta: RotaryBase | None = field(name="local_rope_theta", default=10_000.0)
    rope_parameters: dict[str, dict[str, RotaryBase | Literal["default"]]] | None = None
    layer_types: list[Literal["full_attention", "sliding_attention"]] | None = None
    attention_dropout: Rate = 0.0
    dropout: Rate = field(name="mlp_dropout", default=0.0)


def _config(checkpoint: Checkpoint) -> ModernBertConfig:
    """The shape of a ModernBERT from its settings."""
    settings = checkpoint.settings_as(_Settings, remedy=_REMEDY)
    check_layers(settings.num_layers, checkpoint.source)
    every = settings.global_every
    if (types := settings.layer_types) is not None:
        full = [number for number, name in enumerate(types) if name == "full_attention"]
        every = full[1] if len(full) > 1 else max(1, len(types))
        if full != [*range(0, settings.num_layers, every)]:
            where, expected = checkpoint.settings_file, "full_attention at a fixed interval"
            raise ValueError(f"{where}: layer_types: expected {expected}, from the first on.")
    thetas = [settings.global_theta, settings.local_theta or settings.global_theta]
    if rotary := settings.rope_parameters:
        kinds = ("full_attention", "sliding_attention")
        thetas = [float(rotary[kind]["rope_theta"]) for kind in kinds]
    changes = {"global_every": every, "global_theta": thetas[0], "local_theta": thetas[1]}
    return shape_from(settings, ModernBertConfig, **changes)


def _stored_shapes(config: ModernBertConfig) -> dict[str, tuple[int, ...]]:
    """Name → shape of every tensor of a checkpoint."""
    dim, inner = config.hidden_dim, config.intermediate_dim
    shapes: dict[str, tuple[int, ...]] = {
        _WORDS: (config.vocabulary_size, dim),
        "embeddings.norm.weight": (dim,),
        "final_norm.weight": (dim,),
    }
    kernels = {
        "attn.Wqkv": (3 * dim, dim),
        "attn.Wo": (dim, dim),
        "mlp.Wi": (2 * inner, dim),
        "mlp.Wo": (dim, inner),
    }
    for number in range(config.num_layers):
        layer = f"layers.{number}"
        shapes |= {f"{layer}.{name}.weight": shape for name, shape in kernels.items()}
        norms = ("attn_norm", "mlp_norm") if number else ("mlp_norm",)
        shapes |= {f"{layer}.{norm}.weight": (dim,) for norm in norms}
    return shapes


FAMILY = ModernBertFamily()
