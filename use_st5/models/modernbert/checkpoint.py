"""Reads ModernBERT from folders of transformers and sentence-transformers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

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
from use_st5.models.bert.checkpoint import assign_layers, layers_of, pooling_of
from use_st5.models.modernbert.model import ModernBertConfig, SentenceModernBert

MODEL_TYPE = "modernbert"
_WORDS = "embeddings.tok_embeddings.weight"
# The masked language model's head, and the layers of classifiers.
_UNREAD = re.compile(r"(head|decoder|classifier)\..*")
_REMEDY = "Give the folder of a model as transformers saves it."


class _Theta(msgspec.Struct):
    rope_theta: RotaryBase
    rope_type: Literal["default"] = "default"


class _Rotary(msgspec.Struct):
    full_attention: _Theta
    sliding_attention: _Theta


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
    rope_parameters: _Rotary | None = None
    layer_types: list[Literal["full_attention", "sliding_attention"]] | None = None
    attention_dropout: Rate = 0.0
    mlp_dropout: Rate = 0.0


def read_modernbert(
    checkpoint: Checkpoint,
    *,
    padding: int,
    pooling: str | None = None,
    dtype: Any = None,
    on_tensor: Callable[[str], None] = lambda name: None,
) -> SentenceModernBert:
    """A ModernBERT with the weights of a checkpoint; other arguments and errors: `Family.read`.

    `padding` is the id of the padding in the checkpoint's vocabulary. The model has the modules of
    sentence-transformers, but not the masked language model's head. A projection stays float32.
    """
    config, modules = _config(checkpoint), checkpoint.modules
    names = {
        re.sub(r"^model\.", "", name): name
        for name in checkpoint.source.shapes()
        if not _UNREAD.fullmatch(name)
    }
    rows = {_WORDS: (padding + 1, [padding, *range(1, padding), 0])} if padding else {}
    source = RenamedSource(checkpoint.source, names, first_rows=rows)
    check_shapes(_stored_shapes(config), source)
    model = SentenceModernBert(
        config,
        pooling=pooling_of(checkpoint, pooling),
        **layers_of(modules, config.hidden_dim),
        normalize=modules is not None and modules.normalize,
        dtype=dtype,
    )
    with without_initial_values():
        model.build()
    assign_weights(_targets(model), _Unfused(source, config), on_tensor=on_tensor)
    assign_layers(modules, model, on_tensor=on_tensor)
    return model


def _config(checkpoint: Checkpoint) -> ModernBertConfig:
    """The shape of a ModernBERT from its settings."""
    settings = checkpoint.settings_as(_Settings, remedy=_REMEDY)
    where = checkpoint.settings_file
    check_layers(settings.num_hidden_layers, checkpoint.source)
    every = settings.global_attn_every_n_layers
    if settings.layer_types is not None:
        every = _interval(settings.layer_types)
        expected = [number % every == 0 for number in range(settings.num_hidden_layers)]
        if [each == "full_attention" for each in settings.layer_types] != expected:
            raise ValueError(
                f"{where}: $.layer_types: expected full_attention in every layer of a fixed "
                f"interval, from the first on, received {settings.layer_types!s:.200}. {_REMEDY}"
            )
    rotary, theta = settings.rope_parameters, settings.global_rope_theta
    try:
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
            global_theta=rotary.full_attention.rope_theta if rotary else theta,
            local_theta=rotary.sliding_attention.rope_theta
            if rotary
            else settings.local_rope_theta or theta,
        )
    except ValueError as error:
        raise ValueError(f"{where}: {error} {_REMEDY}") from error


def _interval(types: list[Any]) -> int:
    """The index of the second layer that attends to all tokens; if none, the number of layers."""
    indices = [number for number, each in enumerate(types) if each == "full_attention" and number]
    return indices[0] if indices else max(1, len(types))


# Fused matrix → the roles of its parts, in the order of its rows.
_FUSED = {"attn.Wqkv": ("query", "key", "value"), "mlp.Wi": ("inner", "linear")}
_SINGLE = {"attn.Wo": "output", "mlp.Wo": "outer"}


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
    """The tensors of a checkpoint; each fused matrix is split into one tensor for each role.

    Args:
        source: The checkpoint, whose shapes were checked.
        config: The shape of its model.
    """

    def __init__(self, source: WeightSource, config: ModernBertConfig) -> None:
        self.where = source.where
        self._source = source
        self._parts = {
            f"layers.{number}.{fused}.{role}": (
                f"layers.{number}.{fused}.weight",
                place,
                len(roles),
            )
            for number in range(config.num_layers)
            for fused, roles in _FUSED.items()
            for place, role in enumerate(roles)
        }

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Name → shape of every tensor of the checkpoint."""
        return self._source.shapes()

    def read(self, name: str) -> np.ndarray:
        """One tensor in the dtype it is stored in."""
        if name not in self._parts:
            return self._source.read(name)
        fused, place, number = self._parts[name]
        return np.split(self._source.read(fused), number)[place]

    def pieces(self, name: str) -> Iterator[np.ndarray]:
        """One tensor in pieces along its first axis."""
        if name in self._parts:
            yield self.read(name)
        else:
            yield from self._source.pieces(name)


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
            for role in roles:
                targets[f"{layer}.{fused}.{role}"] = Target(linear[role].kernel, transposed=True)
        for name, role in _SINGLE.items():
            targets[f"{layer}.{name}.weight"] = Target(linear[role].kernel, transposed=True)
        for name, norm in (("attn_norm", block.attention_norm), ("mlp_norm", block.output_norm)):
            if norm is not None:
                targets[f"{layer}.{name}.weight"] = Target(norm.gamma)
    return targets
