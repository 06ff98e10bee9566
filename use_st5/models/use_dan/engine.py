"""USE-DAN and StaticEmbedding without TensorFlow: in NumPy, or dense layers as an ONNX graph."""

from __future__ import annotations

from typing import Any

from use_st5.engines.dan import DANEngine, DANShape, GraphDANEngine
from use_st5.engines.engine import FamilyEngine
from use_st5.engines.onnx_graph import MEANS, GraphWriter

_EPSILON = 1e-12


def write(config: dict[str, Any], graph: GraphWriter) -> tuple[str, int]:
    """Adds the dense layers, from the means of texts to vectors."""
    width, dims, activation, normalize = DANShape.of(config)
    x = graph.input(MEANS)

    def layer(x: str, name: str, inputs: int, outputs: int) -> str:
        return graph.linear(x, f"network/feed_forward/{name}", inputs, outputs)

    def activated(x: str) -> str:
        return x if activation == "linear" else str(graph.op(activation.title(), x))

    for block in range(len(dims) // 2):
        first, last = dims[2 * block : 2 * block + 2]
        hidden = activated(layer(x, f"hidden_{2 * block}", width, first))
        branch = activated(layer(hidden, f"hidden_{2 * block + 1}", first, last))
        if width != last:
            x = layer(x, f"projection_{block}", width, last)
        x, width = graph.op("Add", branch, x), last
    return graph.unit(x, _EPSILON) if normalize else x, width


ENGINE = FamilyEngine(write, GraphDANEngine, without_graph=DANEngine, exact_first=(2, 3))
