"""USE Transformer without TensorFlow: its network as an ONNX graph."""

from __future__ import annotations

from typing import Any

import numpy as np

from use_st5.engines.engine import FamilyEngine
from use_st5.engines.onnx_graph import GraphWriter
from use_st5.engines.transformer import TransformerEngine

_LONGEST_WAVE = 10_000.0
_MOST_POSITIONS = 2**16
_UNIT = 1e-12


def write(config: dict[str, Any], graph: GraphWriter) -> tuple[str, int]:
    """Adds the network."""
    shape = config["config"]
    dim, inner, heads = shape["hidden_dim"], shape["intermediate_dim"], shape["num_heads"]
    if shape["max_length"] > _MOST_POSITIONS:  # No weight has this number of rows.
        raise ValueError(f"use_st5.json: max_length: expected {_MOST_POSITIONS:,} or less.")
    rates = _LONGEST_WAVE ** (-np.arange(dim // 2) / (dim // 2 - 1))
    angles = np.arange(shape["max_length"], dtype=np.float32)[:, None] * rates.astype(np.float32)
    x = graph.linear(graph.tokens(), "widen", shape["embedding_dim"], dim)
    signal = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    x = graph.op("Add", x, graph.at_positions(signal))
    sums = []
    for number in range(shape["num_layers"]):
        name = f"block_{number}"
        normed = graph.norm(x, f"{name}/attention_norm", dim)
        scale = (dim // heads) ** -0.5
        context = graph.attention(normed, f"{name}/attention", dim, dim, heads=heads, scale=scale)
        attention = graph.linear(context, f"{name}/attention/output", dim, dim)
        x = graph.op("Add", attention, x)
        normed = graph.norm(x, f"{name}/feed_forward_norm", dim)
        hidden = graph.op("Relu", graph.linear(normed, f"{name}/inner", dim, inner, bias=True))
        x = graph.op("Add", x, graph.linear(hidden, f"{name}/outer", inner, dim, bias=True))
        if number + 1 == shape["early_output"]:
            sums.append(graph.pooled(graph.norm(x, "early_norm", dim), "scaled_sum"))
    sums.append(graph.pooled(graph.norm(x, "norm", dim), "scaled_sum"))
    vector = sums[0] if len(sums) == 1 else graph.op("Concat", *sums, axis=-1)
    width, dimension = dim * len(sums), shape["dimension"]
    if width != dimension:
        vector = graph.linear(vector, "projection", width, dimension)
    return graph.unit(vector, _UNIT), dimension


ENGINE = FamilyEngine(write, TransformerEngine)
