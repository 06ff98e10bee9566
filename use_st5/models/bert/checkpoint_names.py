"""The weights of a `SentenceBert` by path: their variables, their shapes, and foreign names."""

from __future__ import annotations

from typing import Any

from use_st5.models.bert.config import BertConfig
from use_st5.models.bert.sentence_bert import SentenceBert

WORDS, POSITIONS, WORD_BIAS = "words", "positions", "head/bias"

_HF_TABLES = {
    WORDS: "embeddings.word_embeddings.weight",
    POSITIONS: "embeddings.position_embeddings.weight",
    "types": "embeddings.token_type_embeddings.weight",
    "norm/scale": "embeddings.LayerNorm.weight",
    "norm/shift": "embeddings.LayerNorm.bias",
}
_HF_BLOCK = {
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "output": "attention.output.dense",
    "attention_norm": "attention.output.LayerNorm",
    "inner": "intermediate.dense",
    "outer": "output.dense",
    "output_norm": "output.LayerNorm",
}
# The head of a BERT, and of a RoBERTa.
_HF_HEADS = (
    {
        "head/transform": "cls.predictions.transform.dense",
        "head/norm": "cls.predictions.transform.LayerNorm",
        WORD_BIAS: "cls.predictions",
    },
    {
        "head/transform": "lm_head.dense",
        "head/norm": "lm_head.layer_norm",
        WORD_BIAS: "lm_head",
    },
)


def shapes(config: BertConfig, *, head: bool) -> dict[str, tuple[int, ...]]:
    """Path → shape of every weight but a projection's, without a model.

    The paths: "words", "positions", "types"; "norm/scale" and "norm/shift" of the embeddings;
    "block_{n}/…" with "kernel" and "bias" of "query", "key", "value", "output", "inner" and
    "outer", "scale" and "shift" of "attention_norm" and "output_norm"; "head/transform/kernel" and
    "…/bias", "head/norm/scale" and "…/shift", "head/bias". Kernels are `[inputs, outputs]`.

    Args:
        config: The shape of the model.
        head: Whether it has the masked language model's head.
    """
    dim, inner = config.hidden_dim, config.intermediate_dim
    widths = dict.fromkeys(("query", "key", "value", "output"), (dim, dim))
    widths |= {"inner": (dim, inner), "outer": (inner, dim)}
    found: dict[str, tuple[int, ...]] = {
        WORDS: (config.vocabulary_size, dim),
        POSITIONS: (config.max_positions, dim),
        "types": (config.num_token_types, dim),
        **_norm_shapes("norm", dim),
    }
    for number in range(config.num_layers):
        block = f"block_{number}"
        for role, width in widths.items():
            found |= {f"{block}/{role}/kernel": width, f"{block}/{role}/bias": width[1:]}
        for role in ("attention_norm", "output_norm"):
            found |= _norm_shapes(f"{block}/{role}", dim)
    if head:
        found |= {"head/transform/kernel": (dim, dim), "head/transform/bias": (dim,)}
        found |= {**_norm_shapes("head/norm", dim), WORD_BIAS: (config.vocabulary_size,)}
    return found


def variables(model: SentenceBert) -> dict[str, Any]:
    """Path → Keras variable, for the paths of `shapes`."""
    found = {
        WORDS: model.embedding.embeddings,
        POSITIONS: model.position_embedding.embeddings,
        "types": model.type_embedding.embeddings,
        **_norm("norm", model.embedding_norm),
    }
    for number, block in enumerate(model.blocks):
        for role, layer in block.linear_layers.items():
            found |= _dense(f"block_{number}/{role}", layer)
        for role in ("attention_norm", "output_norm"):
            found |= _norm(f"block_{number}/{role}", getattr(block, role))
    if model.head is not None:
        found |= _dense("head/transform", model.head.transform)
        found |= {**_norm("head/norm", model.head.norm), WORD_BIAS: model.head.bias}
    return found


def hugging_face(config: BertConfig, *, head: bool, roberta: bool = False) -> dict[str, str]:
    """Path → name in a checkpoint of transformers, without "bert." or "roberta." before it.

    Args:
        config: The shape of the model.
        head: Whether the masked language model's head is among them.
        roberta: Whether it is a RoBERTa's head.
    """
    layers = {
        f"block_{number}/{role}": f"encoder.layer.{number}.{name}"
        for number in range(config.num_layers)
        for role, name in _HF_BLOCK.items()
    }
    layers |= _HF_HEADS[roberta] if head else {}
    parts = {"kernel": "weight", "bias": "bias", "scale": "weight", "shift": "bias"}
    names = dict(_HF_TABLES)
    for path in shapes(config, head=head):
        layer, _, part = path.rpartition("/")
        # The bias of the words is the head's own.
        layer = path if path == WORD_BIAS else layer
        if layer in layers:
            names[path] = f"{layers[layer]}.{parts[part]}"
    return names


def _norm_shapes(path: str, dim: int) -> dict[str, tuple[int, ...]]:
    return {f"{path}/scale": (dim,), f"{path}/shift": (dim,)}


def _norm(path: str, layer: Any) -> dict[str, Any]:
    return {f"{path}/scale": layer.gamma, f"{path}/shift": layer.beta}


def _dense(path: str, layer: Any) -> dict[str, Any]:
    return {f"{path}/kernel": layer.kernel, f"{path}/bias": layer.bias}
