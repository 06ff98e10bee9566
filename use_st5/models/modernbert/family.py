"""The family of ModernBERT: that of BERT, with its own model and checkpoints."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

import msgspec
import numpy as np

from use_st5.convert.checkpoint import Checkpoint
from use_st5.convert.weights import (
    RenamedSource,
    Target,
    WeightSource,
    assign_weights,
    check_layers,
    check_shapes,
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
        self,
        checkpoint: Checkpoint,
        *,
        pooling: str | None = None,
        vocabulary: Path | None = None,
        dtype: Any = None,
        on_tensor: Callable[[str], None] = lambda name: None,
    ) -> tuple[SentenceModernBert, FramedTokenizer]:
        """A ModernBERT with the modules of sentence-transformers, whose outputs are pooled."""
        tokenizer = read_framed_tokenizer(
            checkpoint, "ModernBERT", (BytePairTokenizer,), vocabulary
        )
        config, modules, padding = _config(checkpoint), checkpoint.modules, tokenizer.padding_id
        names = {
            re.sub(r"^model\.", "", name): name
            for name in checkpoint.source.shapes()
            if not _UNREAD.fullmatch(name)
        }
        first_rows = padding_first(padding, _WORDS)
        source = RenamedSource(checkpoint.source, names, first_rows=first_rows)
        check_shapes(_stored_shapes(config), source)
        model = SentenceModernBert(
            config,
            pooling=checkpoint.pooling(pooling) or POOLINGS[0],
            **layers_of(modules, config.hidden_dim),
            normalize=modules is not None and modules.normalize,
            dtype=dtype,
        )
        with without_initial_values():
            model.build()
        assign_weights(_targets(model), _Unfused(source), on_tensor=on_tensor)
        assign_layers(modules, model, on_tensor=on_tensor)
        return model, tokenizer


class _Settings(msgspec.Struct):
    """Settings of a ModernBERT in `config.json`, with the defaults of transformers."""

    vocab_size: Positive
    hidden_size: Positive
    num_hidden_layers: Positive
    num_attention_heads: Positive
    intermediate_size: Positive
    max_position_embeddings: Tokens = 8192
    hidden_activation: Literal["gelu"] = "gelu"
    norm_eps: Epsilon = 1e-5
    norm_bias: Literal[False] = False
    attention_bias: Literal[False] = False
    mlp_bias: Literal[False] = False
    global_attn_every_n_layers: Positive = 3
    local_attention: Tokens = 128
    # Before version 5, transformers writes two numbers; since then a record, and layer types.
    global_rope_theta: RotaryBase = 160_000.0
    local_rope_theta: RotaryBase | None = 10_000.0
    rope_parameters: dict[str, dict[str, RotaryBase | Literal["default"]]] | None = None
    layer_types: list[Literal["full_attention", "sliding_attention"]] | None = None
    attention_dropout: Rate = 0.0
    mlp_dropout: Rate = 0.0


def _config(checkpoint: Checkpoint) -> ModernBertConfig:
    """The shape of a ModernBERT from its settings."""
    settings = checkpoint.settings_as(_Settings, remedy=_REMEDY)
    check_layers(settings.num_hidden_layers, checkpoint.source)
    every = settings.global_attn_every_n_layers
    if (types := settings.layer_types) is not None:
        full = [number for number, name in enumerate(types) if name == "full_attention"]
        every = full[1] if len(full) > 1 else max(1, len(types))
        if full != [*range(0, settings.num_hidden_layers, every)]:
            where, expected = checkpoint.settings_file, "full_attention at a fixed interval"
            raise ValueError(f"{where}: layer_types: expected {expected}, from the first on.")
    thetas = [settings.global_rope_theta, settings.local_rope_theta or settings.global_rope_theta]
    if rotary := settings.rope_parameters:
        kinds = ("full_attention", "sliding_attention")
        thetas = [float(rotary[kind]["rope_theta"]) for kind in kinds]
    return ModernBertConfig(
        vocabulary_size=settings.vocab_size,
        num_layers=settings.num_hidden_layers,
        hidden_dim=settings.hidden_size,
        intermediate_dim=settings.intermediate_size,
        num_heads=settings.num_attention_heads,
        max_positions=settings.max_position_embeddings,
        layer_norm_epsilon=settings.norm_eps,
        dropout=settings.mlp_dropout,
        attention_dropout=settings.attention_dropout,
        global_every=every,
        local_window=settings.local_attention,
        global_theta=thetas[0],
        local_theta=thetas[1],
    )


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


class _Unfused(WeightSource):
    """The tensors of a checkpoint; "NAME#i/n" is the i-th of n parts of a fused matrix."""

    def __init__(self, source: WeightSource) -> None:
        self.where = source.where
        self._source = source

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Name → shape of every tensor of the checkpoint."""
        return self._source.shapes()

    def read(self, name: str) -> np.ndarray:
        """One tensor in the dtype it is stored in."""
        stored, _, part = name.partition("#")
        tensor = self._source.read(stored)
        if not part:
            return tensor
        place, number = map(int, part.split("/"))
        return np.split(tensor, number)[place]


def _targets(model: SentenceModernBert) -> Mapping[str, Target]:
    """Name in `_Unfused` → the variable to assign."""
    targets = {
        _WORDS: Target(model.embedding.embeddings),
        "embeddings.norm.weight": Target(model.embedding_norm.gamma),
        "final_norm.weight": Target(model.final_norm.gamma),
    }
    for number, block in enumerate(model.blocks):
        layer, linear = f"layers.{number}", block.linear_layers
        for fused, roles in _FUSED.items():
            for place, role in enumerate(roles):
                name = f"{layer}.{fused}.weight#{place}/{len(roles)}"
                targets[name] = Target(linear[role].kernel, transposed=True)
        for name, role in _SINGLE.items():
            targets[f"{layer}.{name}.weight"] = Target(linear[role].kernel, transposed=True)
        for name, norm in (("attn_norm", block.attention_norm), ("mlp_norm", block.output_norm)):
            if norm is not None:
                targets[f"{layer}.{name}.weight"] = Target(norm.gamma)
    return targets


FAMILY = ModernBertFamily()
