"""BERT and RoBERTa without TensorFlow: the network as an ONNX graph."""

from __future__ import annotations

from typing import Any

from use_st5.engines.engine import FamilyEngine
from use_st5.engines.onnx_graph import GraphWriter
from use_st5.engines.transformer import TransformerEngine

_UNIT = 1e-12
# The poolings, and their names in `GraphWriter.pooled`.
_POOLINGS = {"mean": "mean", "cls": "first", "max": "max", "mean_sqrt_len": "scaled_sum"}


def write(config: dict[str, Any], graph: GraphWriter, *, scores: str = "") -> tuple[str, int]:
    """Adds the network; `scores` are added to the attention scores."""
    shape = config["config"]
    dim, inner, heads = shape["hidden_dim"], shape["intermediate_dim"], shape["num_heads"]
    epsilon = shape["layer_norm_epsilon"]
    positions = graph.layer("position_embedding/embeddings", shape["max_positions"], dim)
    if shape["num_token_types"]:  # All tokens of a single text have type 0.
        types = graph.layer("type_embedding/embeddings", shape["num_token_types"], dim)
        positions = positions + types[0]
    x = graph.op("Add", graph.tokens(), graph.at_positions(positions))
    x = graph.norm(x, "embedding_norm", dim, epsilon)
    for number in range(shape["num_layers"]):
        name = f"block_{number}"
        context = graph.attention(
            x,
            f"{name}/attention",
            dim,
            dim,
            heads=heads,
            scale=(dim // heads) ** -0.5,
            has_bias=True,
            scores=scores,
        )
        attention = graph.linear(context, f"{name}/attention/output", dim, dim, bias=True)
        x = graph.norm(graph.op("Add", attention, x), f"{name}/attention_norm", dim, epsilon)
        hidden = graph.linear(x, f"{name}/inner", dim, inner)
        activation = "FastGelu" if shape["activation"] == "gelu_tanh" else "BiasGelu"
        inner_bias = graph.weight(graph.layer(f"{name}/inner/bias", inner))
        hidden = graph.fused(activation, hidden, inner_bias)
        feed_forward = graph.linear(hidden, f"{name}/outer", inner, dim, bias=True)
        x = graph.norm(graph.op("Add", feed_forward, x), f"{name}/output_norm", dim, epsilon)
    poolings = config["pooling"].split("+")
    if not {*poolings} <= {*_POOLINGS}:
        raise ValueError(f"ONNX Runtime has no pooling {config['pooling']!r}, TensorFlow has it.")
    vectors = [graph.pooled(x, _POOLINGS[name]) for name in poolings]
    vector = graph.op("Concat", *vectors, axis=1) if len(vectors) > 1 else vectors[0]
    dim *= len(vectors)
    if config["dense"]:
        vector, dim = _dense(vector, dim, config["dense"], "projection", graph)
    for number, layer in enumerate(config.get("after", ())):
        name = f"further_{number}"
        if "epsilon" in layer:
            vector = graph.norm(vector, name, dim, layer["epsilon"])
        else:
            vector, dim = _dense(vector, dim, layer, name, graph)
    return graph.unit(vector, _UNIT) if config["normalize"] else vector, dim


def _dense(
    vector: str, dim: int, dense: dict[str, Any], name: str, graph: GraphWriter
) -> tuple[str, int]:
    """A dense layer after the pooling."""
    vector = graph.linear(vector, name, dim, dense["units"], bias=dense["use_bias"])
    activation = dense["activation"]
    if activation == "gelu":
        vector = graph.fused("Gelu", vector)
    elif activation == "silu":
        vector = graph.op("Mul", vector, graph.op("Sigmoid", vector))
    elif activation == "mish":
        vector = graph.op("Mul", vector, graph.op("Tanh", graph.op("Softplus", vector)))
    elif activation != "linear":
        vector = graph.op(activation.title().replace("_", ""), vector)
    return vector, dense["units"]


ENGINE = FamilyEngine(write, TransformerEngine)
