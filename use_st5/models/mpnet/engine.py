"""MPNet without TensorFlow: BERT's graph, with a bias of the attention scores by distance."""

from __future__ import annotations

from functools import partial
from typing import Any

from use_st5.engines.engine import FamilyEngine
from use_st5.engines.onnx_graph import BIAS, GraphWriter
from use_st5.engines.transformer import TransformerEngine
from use_st5.models.bert import engine as bert


def write(config: dict[str, Any], graph: GraphWriter) -> tuple[str, int]:
    """Adds the network."""
    return bert.write(config, graph, scores=graph.input(BIAS))


ENGINE = FamilyEngine(
    write, partial(TransformerEngine, bias=("relative_bias/table", "relative_buckets"))
)
