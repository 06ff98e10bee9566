"""Sentence-T5 without TensorFlow: the encoder as an ONNX graph."""

from __future__ import annotations

from functools import partial
from typing import Any

from use_st5.engines.engine import FamilyEngine
from use_st5.engines.onnx_graph import BIAS, EPSILON, GraphWriter
from use_st5.engines.transformer import TransformerEngine


def write(config: dict[str, Any], graph: GraphWriter) -> tuple[str, int]:
    """Adds the network of an encoder; one with a decoder is refused."""
    shape = config["config"]
    if config["pooling"] == "decoder":
        raise ValueError("A Sentence-T5 with a decoder runs with backend='tensorflow' alone.")
    dim, heads = shape["hidden_dim"], shape["num_heads"]
    width, inner = heads * shape["key_value_dim"], shape["intermediate_dim"]
    x, branch = graph.tokens(), ""

    def normed(name: str, x: str, branch: str) -> tuple[str, str]:
        """The RMS norm of `branch + x`, and this sum."""
        scale = graph.weight(graph.layer(f"encoder/{name}/scale", dim))
        if not branch:
            norm = graph.op("SimplifiedLayerNormalization", x, scale, axis=-1, epsilon=EPSILON)
            return norm, x
        outputs = graph.fused(
            "SkipSimplifiedLayerNormalization", branch, x, scale, outputs=4, epsilon=EPSILON
        )
        return outputs[0], outputs[3]

    for number in range(shape["num_layers"]):
        name = f"block_{number}"
        y, x = normed(f"{name}/attention_norm", x, branch)
        attention = f"encoder/{name}/attention"
        bias = graph.input(BIAS)
        context = graph.attention(y, attention, dim, width, heads=heads, scale=1.0, scores=bias)
        branch = graph.linear(context, f"{attention}/output", width, dim)
        y, x = normed(f"{name}/feed_forward_norm", x, branch)
        prefix = f"encoder/{name}/feed_forward"
        hidden = graph.linear(y, f"{prefix}/inner", dim, inner)
        if shape["activation"] == "gated_gelu":
            linear = graph.linear(y, f"{prefix}/linear", dim, inner)
            hidden = graph.op("Mul", graph.fused("FastGelu", hidden), linear)
        else:
            hidden = graph.op("Relu", hidden)
        branch = graph.linear(hidden, f"{prefix}/outer", inner, dim)
    y, _ = normed("norm", x, branch)
    vector = graph.pooled(y, config["pooling"])
    if config["projection_dim"]:
        vector = graph.linear(vector, "projection", dim, config["projection_dim"])
        dim = config["projection_dim"]
    return graph.unit(vector, EPSILON) if config["normalize"] else vector, dim


ENGINE = FamilyEngine(
    write, partial(TransformerEngine, bias=("encoder/position_bias/table", "num_buckets"))
)
