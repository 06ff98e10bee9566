"""The weights of a Sentence-BERT by path: their shapes, variables, and names in each library."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping
from typing import Any

from use_st5.models.bert.model import BertConfig, SentenceBert

WORDS, POSITIONS, TYPES, WORD_BIAS = "words", "positions", "types", "head/bias"
_BLOCK_NORMS = ("attention_norm", "output_norm")


def weight_variables(model: SentenceBert) -> dict[str, Any]:
    """Path → Keras variable, for the paths of `weight_shapes`."""
    layers = {"norm": model.embedding_norm}
    for number, block in enumerate(model.blocks):
        norms = {name: getattr(block, name) for name in _BLOCK_NORMS}
        for role, layer in {**block.linear_layers, **norms}.items():
            layers[f"block_{number}/{role}"] = layer
    variables = {WORDS: model.embedding.embeddings, POSITIONS: model.position_embedding.embeddings}
    if model.type_embedding is not None:
        variables[TYPES] = model.type_embedding.embeddings
    variables |= model.own_tables
    if model.head is not None:
        layers |= {"head/transform": model.head.transform, "head/norm": model.head.norm}
        variables[WORD_BIAS] = model.head.bias
    for path, layer in layers.items():
        if path.endswith("norm"):
            variables |= {f"{path}/scale": layer.gamma, f"{path}/shift": layer.beta}
        else:
            variables |= {f"{path}/kernel": layer.kernel, f"{path}/bias": layer.bias}
    return variables


def weight_shapes(config: BertConfig, *, head: bool) -> dict[str, tuple[int, ...]]:
    """Path → shape of every weight except a projection's, known before a model is built."""
    dim, inner = config.hidden_dim, config.intermediate_dim
    shapes: dict[str, tuple[int, ...]] = {
        WORDS: (config.vocabulary_size, dim),
        POSITIONS: (config.max_positions, dim),
    }
    if config.num_token_types:
        shapes[TYPES] = (config.num_token_types, dim)
    shapes |= config.own_tables
    kernels = dict.fromkeys(("query", "key", "value", "output"), (dim, dim))
    kernels |= {"inner": (dim, inner), "outer": (inner, dim)}
    blocks = [f"block_{number}" for number in range(config.num_layers)]
    dense = {f"{block}/{role}": shape for block in blocks for role, shape in kernels.items()}
    norms = ["norm", *(f"{block}/{norm}" for block in blocks for norm in _BLOCK_NORMS)]
    if head:
        dense["head/transform"] = (dim, dim)
        norms.append("head/norm")
        shapes[WORD_BIAS] = (config.vocabulary_size,)
    for path, shape in dense.items():
        shapes |= {f"{path}/kernel": shape, f"{path}/bias": shape[1:]}
    return shapes | {f"{path}/{part}": (dim,) for path in norms for part in ("scale", "shift")}


@dataclasses.dataclass(frozen=True, kw_only=True)
class WeightNames:
    """The names of the weights in one library; `block` is the prefix in block `{n}`."""

    tables: Mapping[str, str]
    layers: Mapping[str, str]
    block: str
    parts: Mapping[str, str]
    transposed: bool = False

    def names(self, config: BertConfig, *, head: bool) -> dict[str, str]:
        """Path → name of each weight."""
        names = {}
        for path in weight_shapes(config, head=head):
            layer, _, part = path.rpartition("/")
            in_block = re.fullmatch(r"block_(\d+)/(.*)", layer)
            if path in self.tables:
                names[path] = self.tables[path]
            elif in_block:
                block = self.block.format(n=in_block[1])
                names[path] = block + self.layers[in_block[2]] + self.parts[part]
            else:
                names[path] = self.layers[layer] + self.parts[part]
        return names

    def has_head(self, shapes: Iterable[str]) -> bool:
        """Whether the masked language model's head is among these tensors."""
        return self.layers["head/transform"] + self.parts["kernel"] in shapes


_TENSORFLOW_PARTS = {"kernel": "/kernel", "bias": "/bias", "scale": "/gamma", "shift": "/beta"}
HUGGING_FACE = WeightNames(
    tables={
        WORDS: "embeddings.word_embeddings.weight",
        POSITIONS: "embeddings.position_embeddings.weight",
        TYPES: "embeddings.token_type_embeddings.weight",
        WORD_BIAS: "cls.predictions.bias",
    },
    layers={
        "norm": "embeddings.LayerNorm",
        "query": "attention.self.query",
        "key": "attention.self.key",
        "value": "attention.self.value",
        "output": "attention.output.dense",
        "attention_norm": "attention.output.LayerNorm",
        "inner": "intermediate.dense",
        "outer": "output.dense",
        "output_norm": "output.LayerNorm",
        "head/transform": "cls.predictions.transform.dense",
        "head/norm": "cls.predictions.transform.LayerNorm",
    },
    block="encoder.layer.{n}.",
    parts={"kernel": ".weight", "bias": ".bias", "scale": ".weight", "shift": ".bias"},
    transposed=True,
)
HUGGING_FACE_ROBERTA = dataclasses.replace(
    HUGGING_FACE,
    tables={**HUGGING_FACE.tables, WORD_BIAS: "lm_head.bias"},
    layers={
        **HUGGING_FACE.layers,
        "head/transform": "lm_head.dense",
        "head/norm": "lm_head.layer_norm",
    },
)
HUGGING_FACE_DISTILBERT = WeightNames(
    tables={**HUGGING_FACE.tables, WORD_BIAS: "vocab_projector.bias"},
    layers={
        "norm": "embeddings.LayerNorm",
        "query": "attention.q_lin",
        "key": "attention.k_lin",
        "value": "attention.v_lin",
        "output": "attention.out_lin",
        "attention_norm": "sa_layer_norm",
        "inner": "ffn.lin1",
        "outer": "ffn.lin2",
        "output_norm": "output_layer_norm",
        "head/transform": "vocab_transform",
        "head/norm": "vocab_layer_norm",
    },
    block="transformer.layer.{n}.",
    parts=HUGGING_FACE.parts,
    transposed=True,
)
ORIGINAL = WeightNames(
    tables={
        WORDS: "bert/embeddings/word_embeddings",
        POSITIONS: "bert/embeddings/position_embeddings",
        TYPES: "bert/embeddings/token_type_embeddings",
        WORD_BIAS: "cls/predictions/output_bias",
    },
    layers={
        role: name.replace("encoder.", "").replace(".", "/")
        for role, name in {**HUGGING_FACE.layers, "norm": "bert.embeddings.LayerNorm"}.items()
    },
    block="bert/encoder/layer_{n}/",
    parts=_TENSORFLOW_PARTS,
)
# Names below the encoder. In a checkpoint, ".S" replaces a slash in a variable's own name.
MODEL_GARDEN = WeightNames(
    tables={
        WORDS: "_embedding_layer/embeddings",
        POSITIONS: "_position_embedding_layer/embeddings",
        TYPES: "_type_embedding_layer/embeddings",
        WORD_BIAS: "masked_lm/output_bias.Sbias",
    },
    layers={
        "norm": "_embedding_norm_layer",
        "query": "_attention_layer/_query_dense",
        "key": "_attention_layer/_key_dense",
        "value": "_attention_layer/_value_dense",
        "output": "_attention_layer/_output_dense",
        "attention_norm": "_attention_layer_norm",
        "inner": "_intermediate_dense",
        "outer": "_output_dense",
        "output_norm": "_output_layer_norm",
        "head/transform": "masked_lm/dense",
        "head/norm": "masked_lm/layer_norm",
    },
    block="_transformer_layers/{n}/",
    parts=_TENSORFLOW_PARTS,
)
