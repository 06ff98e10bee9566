"""The weights of a T5 by path: their shapes, variables, and names in each library."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from use_st5.convert.weights import Target, WeightSource, check_layers, listed
from use_st5.models.t5.model import T5, T5Config
from use_st5.models.t5.sentence_t5 import SentenceT5

Shapes = Mapping[str, tuple[int, ...]]


def weight_shapes(config: T5Config, *, decoder: bool) -> dict[str, tuple[int, ...]]:
    """Path, such as "encoder/0/query" → shape of the weights, known before a model is built."""
    dim, heads = config.hidden_dim, config.num_heads * config.key_value_dim
    attention = {"query": (dim, heads), "key": (dim, heads), "value": (dim, heads)}
    attention["output"] = (heads, dim)
    inner = ("inner",) if config.activation == "relu" else ("gate", "linear")
    block: dict[str, tuple[int, ...]] = {"attention_norm": (dim,), **attention}
    block |= {"feed_forward_norm": (dim,), "outer": (config.intermediate_dim, dim)}
    block |= dict.fromkeys(inner, (dim, config.intermediate_dim))
    cross = {f"cross_{role}": shape for role, shape in attention.items()}
    stacks: list[tuple[str, int, dict]] = [("encoder", config.num_layers, block)]
    if decoder:
        stacks.append(("decoder", config.decoder_layers, {**block, "cross_norm": (dim,), **cross}))
    shapes: dict[str, tuple[int, ...]] = {"table": (config.vocabulary_size, dim)}
    for stack, layers, roles in stacks:
        shapes[f"{stack}/position_bias"] = (config.num_buckets, config.num_heads)
        shapes[f"{stack}/norm"] = (dim,)
        shapes |= {f"{stack}/{n}/{role}": roles[role] for n in range(layers) for role in roles}
    return shapes


def weight_variables(model: T5 | SentenceT5) -> dict[str, Any]:
    """Path → Keras variable, for the paths of `weight_shapes`."""
    variables = {"table": model.embedding.embeddings}
    for stack in (model.encoder, model.decoder):
        if stack is None:
            continue
        variables[f"{stack.name}/position_bias"] = stack.position_bias.table
        variables[f"{stack.name}/norm"] = stack.norm.scale
        for number, block in enumerate(stack.blocks):
            layers = {**block.attention.linear_layers, **block.feed_forward.linear_layers}
            if "linear" in layers:
                layers["gate"] = layers.pop("inner")
            norms = ["attention_norm", "feed_forward_norm"]
            if block.decoder:
                cross = block.cross.linear_layers
                layers |= {f"cross_{role}": layer for role, layer in cross.items()}
                norms.append("cross_norm")
            place = f"{stack.name}/{number}"
            variables |= {f"{place}/{role}": layer.kernel for role, layer in layers.items()}
            variables |= {f"{place}/{norm}": getattr(block, norm).scale for norm in norms}
    return variables


@dataclass(frozen=True, kw_only=True)
class T5Names:
    """The mapping table of a checkpoint format: role → name, `{n}` stands for the block's number.

    Attributes:
        table: The table of tokens.
        encoder: Role → name.
        decoder: Role → name.
        logits: The decoder's output layer, if it is not the table.
        projection: A dual encoder's projection; "": the format has none.
        transposed: The roles whose tensors are stored transposed; "logits" may be one of them.
    """

    table: str
    encoder: Mapping[str, str]
    decoder: Mapping[str, str]
    logits: str
    projection: str = ""
    transposed: frozenset[str] = frozenset()

    def targets(self, model: T5 | SentenceT5) -> dict[str, Target]:
        """Name in the checkpoint → variable, for the weights of `weight_shapes`."""
        return {
            self.name(path): Target(variable, transposed=self.is_transposed(path))
            for path, variable in weight_variables(model).items()
        }

    def shapes(
        self, config: T5Config, source: WeightSource, *, decoder: bool
    ) -> dict[str, tuple[int, ...]]:
        """Name → shape of the tensors of `targets`, to compare before a model needs memory."""
        check_layers(max(config.num_layers, config.decoder_layers * decoder), source)
        return {
            self.name(path): shape[::-1] if self.is_transposed(path) else shape
            for path, shape in weight_shapes(config, decoder=decoder).items()
        }

    def name(self, path: str) -> str:
        """The name in the checkpoint of a path of `weight_shapes`."""
        if path == "table":
            return self.table
        stack, *number, role = path.split("/")
        names = self.encoder if stack == "encoder" else self.decoder
        return names[role].format(n=int(number[0]) if number else 0)

    def is_transposed(self, path: str) -> bool:
        """Whether the tensor of a path is stored as its transpose."""
        return path.rpartition("/")[2] in self.transposed

    def config(self, shapes: Shapes, *, where: str) -> T5Config:
        """The shape of the T5 with these tensors; the rest is as in the published models."""
        gated = self.encoder["linear"].format(n=0) in shapes
        roles = ("position_bias", "query", "gate" if gated else "inner")
        names = [self.table, *(self.encoder[role].format(n=0) for role in roles)]
        if absent := [name for name in names if len([*filter(None, shapes.get(name, ()))]) != 2]:
            raise ValueError(f"{where}: expected the matrices of a T5: {listed(absent)}.")
        table, bias, query, inner = (
            shapes[name][::-1] if role in self.transposed else shapes[name]
            for role, name in zip(("table", *roles), names, strict=True)
        )
        if query[1] % bias[1]:
            expected = f"the width of a multiple of {bias[1]} heads, found {query[1]}"
            raise ValueError(f"{where}: {names[2]}: expected {expected}.")
        tied = self.logits not in shapes
        return T5Config(
            vocabulary_size=table[0],
            num_layers=_count(self.encoder["query"], shapes),
            hidden_dim=table[1],
            intermediate_dim=inner[1],
            num_heads=bias[1],
            key_value_dim=query[1] // bias[1],
            activation="gated_gelu" if gated else "relu",
            tied_softmax=tied,
            scaled_softmax=tied,
            num_decoder_layers=_count(self.decoder["query"], shapes) or None,
            num_buckets=bias[0],
        )


def _count(template: str, shapes: Shapes) -> int:
    """The number of blocks."""
    number = 0
    while template.format(n=number) in shapes:
        number += 1
    return number


def _attention(template: str, prefix: str = "") -> dict[str, str]:
    """Role → name of the four kernels of an attention; "@" stands for the kernel."""
    words = ("query", "key", "value", "out") if "kernel" in template else "qkvo"
    roles = ("query", "key", "value", "output")
    pairs = zip(roles, words, strict=True)
    return {prefix + role: template.replace("@", word) for role, word in pairs}


_HF_ENCODER = {
    "position_bias": "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight",
    "norm": "encoder.final_layer_norm.weight",
    "attention_norm": "encoder.block.{n}.layer.0.layer_norm.weight",
    **_attention("encoder.block.{n}.layer.0.SelfAttention.@.weight"),
    "feed_forward_norm": "encoder.block.{n}.layer.1.layer_norm.weight",
    "inner": "encoder.block.{n}.layer.1.DenseReluDense.wi.weight",
    "gate": "encoder.block.{n}.layer.1.DenseReluDense.wi_0.weight",
    "linear": "encoder.block.{n}.layer.1.DenseReluDense.wi_1.weight",
    "outer": "encoder.block.{n}.layer.1.DenseReluDense.wo.weight",
}
_HF_DECODER = {
    **{
        role: name.replace("encoder", "decoder").replace("layer.1", "layer.2")
        for role, name in _HF_ENCODER.items()
    },
    "cross_norm": "decoder.block.{n}.layer.1.layer_norm.weight",
    **_attention("decoder.block.{n}.layer.1.EncDecAttention.@.weight", "cross_"),
}
HUGGING_FACE = T5Names(
    table="shared.weight",
    encoder=_HF_ENCODER,
    decoder=_HF_DECODER,
    logits="lm_head.weight",
    # torch stores dense kernels transposed.
    transposed=frozenset(
        {"query", "key", "value", "output", "inner", "gate", "linear", "outer", "logits"}
        | {"cross_query", "cross_key", "cross_value", "cross_output"}
    ),
)

_T5X_ENCODER = {
    "position_bias": "encoder/relpos_bias/rel_embedding",
    "norm": "encoder/encoder_norm/scale",
    "attention_norm": "encoder/layers_{n}/pre_attention_layer_norm/scale",
    **_attention("encoder/layers_{n}/attention/@/kernel"),
    "feed_forward_norm": "encoder/layers_{n}/pre_mlp_layer_norm/scale",
    "inner": "encoder/layers_{n}/mlp/wi/kernel",
    "gate": "encoder/layers_{n}/mlp/wi_0/kernel",
    "linear": "encoder/layers_{n}/mlp/wi_1/kernel",
    "outer": "encoder/layers_{n}/mlp/wo/kernel",
}
_T5X_DECODER = {
    **{role: name.replace("encoder", "decoder") for role, name in _T5X_ENCODER.items()},
    "attention_norm": "decoder/layers_{n}/pre_self_attention_layer_norm/scale",
    **_attention("decoder/layers_{n}/self_attention/@/kernel"),
    "cross_norm": "decoder/layers_{n}/pre_cross_attention_layer_norm/scale",
    **_attention("decoder/layers_{n}/encoder_decoder_attention/@/kernel", "cross_"),
}
T5X = T5Names(
    table="token_embedder/embedding",
    encoder=_T5X_ENCODER,
    decoder=_T5X_DECODER,
    logits="decoder/logits_dense/kernel",
    projection="projection_layer/kernel",
    transposed=frozenset({"position_bias"}),
)

# The names of T5 1.0; see `_as_in_1_0`.
_MESH_ENCODER = {
    "position_bias": "encoder/block_000/layer_000/SelfAttention/relative_attention_bias",
    "norm": "encoder/final_layer_norm/scale",
    "attention_norm": "encoder/block_{n:03d}/layer_000/layer_norm/scale",
    **_attention("encoder/block_{n:03d}/layer_000/SelfAttention/@"),
    "feed_forward_norm": "encoder/block_{n:03d}/layer_001/layer_norm/scale",
    "inner": "encoder/block_{n:03d}/layer_001/DenseReluDense/wi/kernel",
    "gate": "encoder/block_{n:03d}/layer_001/DenseReluDense/wi_0/kernel",
    "linear": "encoder/block_{n:03d}/layer_001/DenseReluDense/wi_1/kernel",
    "outer": "encoder/block_{n:03d}/layer_001/DenseReluDense/wo/kernel",
}
_MESH_DECODER = {
    **{
        role: name.replace("encoder", "decoder").replace("layer_001", "layer_002")
        for role, name in _MESH_ENCODER.items()
    },
    "cross_norm": "decoder/block_{n:03d}/layer_001/layer_norm/scale",
    **_attention("decoder/block_{n:03d}/layer_001/EncDecAttention/@", "cross_"),
}
MESH_TENSORFLOW = T5Names(
    table="shared/embedding",
    encoder=_MESH_ENCODER,
    decoder=_MESH_DECODER,
    logits="decoder/logits/kernel",
    transposed=frozenset({"position_bias"}),
)

_GARDEN_ENCODER = {
    "position_bias": "encoder/relative_embedding/relative_attention_bias/embeddings",
    "norm": "encoder/output_norm/weight",
    "attention_norm": "encoder/encoder_layers/{n}/self_attention/layer_norm/weight",
    **_attention("encoder/encoder_layers/{n}/self_attention/self_attention/@/w"),
    "feed_forward_norm": "encoder/encoder_layers/{n}/ffn_layer_norm/weight",
    "inner": "encoder/encoder_layers/{n}/ffn/wi/0/w",
    "gate": "encoder/encoder_layers/{n}/ffn/wi/0/w",
    "linear": "encoder/encoder_layers/{n}/ffn/wi/1/w",
    "outer": "encoder/encoder_layers/{n}/ffn/wo/w",
}
_GARDEN_DECODER = {
    **{role: name.replace("encoder", "decoder") for role, name in _GARDEN_ENCODER.items()},
    "cross_norm": "decoder/decoder_layers/{n}/cross_attention/layer_norm/weight",
    **_attention("decoder/decoder_layers/{n}/cross_attention/cross_attention/@/w", "cross_"),
}
MODEL_GARDEN = T5Names(
    table="encoder/input_embed/embeddings",
    encoder=_GARDEN_ENCODER,
    decoder=_GARDEN_DECODER,
    logits="decoder/logits_dense/w",
)
