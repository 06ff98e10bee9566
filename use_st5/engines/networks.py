"""The Transformers of each family as ONNX graphs, written from the weights of a SavedModel."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from use_st5.engines.onnx_graph import BIAS, IDS, MEANS, POSITIONS, GraphWriter
from use_st5.engines.weights import Table, Weights
from use_st5.hub.model_manifest import ModelManifest

Config = dict[str, Any]
_LONGEST_WAVE = 10_000.0
_MOST_POSITIONS = 2**16
_EPSILON = 1e-6
_UNIT = 1e-12
# The poolings of a BERT, and their names in `GraphWriter.pooled`.
_POOLINGS = {"mean": "mean", "cls": "first", "max": "max", "mean_sqrt_len": "scaled_sum"}


def rounded_kernels(family: str, config: Config) -> list[str]:
    """The names of the matrices that an int8 model of use_st5 0.2 stores as unnamed codes."""
    if family not in ("bert", "mpnet"):
        return []
    layers = [f"attention/{role}" for role in ("query", "key", "value", "output")]
    return [
        "position_embedding/embeddings",
        *(
            f"block_{block}/{layer}/kernel"
            for block in range(config["config"]["num_layers"])
            for layer in (*layers, "inner", "outer")
        ),
        *(["projection/kernel"] if config["dense"] else []),
    ]


def write_network(
    family: str, config: Config, table: Table, weights: Weights, graph: GraphWriter
) -> tuple[str, int]:
    """Adds the network of a model to a graph.

    Args:
        family: "use_dan" (from the means of texts), "use_transformer", "bert", "mpnet" or "t5".
        config: The `config` of its `use_st5.json`.
        table: The token table.
        weights: The other weights.
        graph: The graph to write to.

    Returns:
        The name and the dimension of the vectors.

    Raises:
        ValueError: A weight is missing or of another shape, or the model has a decoder.
    """
    return _WRITERS[family](config, table, weights, graph)


def _use_dan(config: Config, _: Table, weights: Weights, graph: GraphWriter) -> tuple[str, int]:
    shape = config["config"]
    width, dims, kind = shape["embedding_dim"], shape["hidden_dims"], shape["activation"]
    x = graph.input(MEANS)

    def product(x: str, name: str, *shape: int) -> str:
        return graph.linear(x, weights(f"network/feed_forward/{name}/kernel", shape))

    def activated(x: str) -> str:
        return x if kind == "linear" else str(graph.op(kind.title(), x))

    for block in range(len(dims) // 2):
        first, last = dims[2 * block : 2 * block + 2]
        hidden = activated(product(x, f"hidden_{2 * block}", width, first))
        branch = activated(product(hidden, f"hidden_{2 * block + 1}", first, last))
        if width != last:
            x = product(x, f"projection_{block}", width, last)
        x, width = graph.op("Add", branch, x), last
    return graph.unit(x, _UNIT), width


def _embedded(table: Table, graph: GraphWriter) -> str:
    """The rows of the tokens, float32 `[tokens, dim]`."""
    ids = graph.input(IDS)
    rows = graph.op("Gather", graph.weight(table.codes), ids, axis=0)
    if table.scales is None:
        return str(rows)
    scales = graph.op("Gather", graph.weight(table.scales[:, None]), ids, axis=0)
    return str(graph.op("Mul", graph.op("Cast", rows, to=1), scales))


def _of_positions(positions: np.ndarray, graph: GraphWriter) -> str:
    return str(graph.op("Gather", graph.weight(positions), graph.input(POSITIONS), axis=0))


def _roles(weights: Weights, prefix: str, dim: int, inner: int) -> list[np.ndarray]:
    roles = ("query", "key", "value")
    return [weights(f"{prefix}/{role}/kernel", (dim, inner)) for role in roles]


def _norm(
    x: str, name: str, weights: Weights, dim: int, graph: GraphWriter, epsilon: float = _EPSILON
) -> str:
    """Layer normalization; after `Add` it is faster than a fused `SkipLayerNormalization`."""
    parts = [graph.weight(weights(f"{name}/{part}", (dim,))) for part in ("gamma", "beta")]
    return str(graph.op("LayerNormalization", x, *parts, axis=-1, epsilon=epsilon))


def _use_transformer(
    config: Config, table: Table, weights: Weights, graph: GraphWriter
) -> tuple[str, int]:
    shape = config["config"]
    dim, inner = shape["hidden_dim"], shape["intermediate_dim"]
    if shape["max_length"] > _MOST_POSITIONS:  # No weight has this number of rows.
        raise ValueError(
            f"use_st5.json: expected a max_length of {_MOST_POSITIONS:,} or less, received "
            f"{shape['max_length']:,}. Load the model with backend='tensorflow'."
        )
    rates = _LONGEST_WAVE ** (-np.arange(dim // 2) / (dim // 2 - 1))
    angles = np.arange(shape["max_length"], dtype=np.float32)[:, None] * rates.astype(np.float32)
    x = graph.linear(
        _embedded(table, graph), weights("widen/kernel", (shape["embedding_dim"], dim))
    )
    signal = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    x = graph.op("Add", x, _of_positions(signal, graph))
    sums = []
    for number in range(shape["num_layers"]):
        name = f"block_{number}"
        normed = _norm(x, f"{name}/attention_norm", weights, dim, graph)
        heads = shape["num_heads"]
        context = graph.attention(
            normed,
            _roles(weights, f"{name}/attention", dim, dim),
            heads=heads,
            scale=(dim // heads) ** -0.5,
        )
        attention = graph.linear(context, weights(f"{name}/attention/output/kernel", (dim, dim)))
        x = graph.op("Add", attention, x)
        normed = _norm(x, f"{name}/feed_forward_norm", weights, dim, graph)
        hidden = graph.linear(normed, weights(f"{name}/inner/kernel", (dim, inner)))
        hidden = graph.op("Relu", graph.add(hidden, weights(f"{name}/inner/bias", (inner,))))
        feed_forward = graph.linear(hidden, weights(f"{name}/outer/kernel", (inner, dim)))
        x = graph.op("Add", x, graph.add(feed_forward, weights(f"{name}/outer/bias", (dim,))))
        if number + 1 == shape["early_output"]:
            sums.append(_summed("early_norm", x, weights, dim, graph))
    sums.append(_summed("norm", x, weights, dim, graph))
    vector = sums[0] if len(sums) == 1 else graph.op("Concat", *sums, axis=-1)
    width, dimension = dim * len(sums), shape["dimension"]
    if width != dimension:
        vector = graph.linear(vector, weights("projection/kernel", (width, dimension)))
    return graph.unit(vector, _UNIT), dimension


def _summed(name: str, x: str, weights: Weights, dim: int, graph: GraphWriter) -> str:
    return graph.pooled(_norm(x, name, weights, dim, graph), "scaled_sum")


def _bert(
    config: Config, table: Table, weights: Weights, graph: GraphWriter, *, bias: str = ""
) -> tuple[str, int]:
    shape = config["config"]
    dim, inner, heads = (shape[each] for each in ("hidden_dim", "intermediate_dim", "num_heads"))
    epsilon = shape["layer_norm_epsilon"]
    positions = weights("position_embedding/embeddings", (shape["max_positions"], dim))
    if shape["num_token_types"]:  # All tokens of a single text have type 0.
        types = weights("type_embedding/embeddings", (shape["num_token_types"], dim))
        positions = positions + types[0]
    x = graph.op("Add", _embedded(table, graph), _of_positions(positions, graph))
    x = _norm(x, "embedding_norm", weights, dim, graph, epsilon)

    def added(branch: str, x: str, norm: str, bias: str) -> str:
        total = graph.op("Add", graph.add(branch, weights(bias, (dim,))), x)
        return _norm(total, norm, weights, dim, graph, epsilon)

    for number in range(shape["num_layers"]):
        name = f"block_{number}"
        context = graph.attention(
            x,
            _roles(weights, f"{name}/attention", dim, dim),
            heads=heads,
            scale=(dim // heads) ** -0.5,
            biases=[
                weights(f"{name}/attention/{role}/bias", (dim,))
                for role in ("query", "key", "value")
            ],
            bias=bias,
        )
        attention = graph.linear(context, weights(f"{name}/attention/output/kernel", (dim, dim)))
        x = added(attention, x, f"{name}/attention_norm", f"{name}/attention/output/bias")
        hidden = graph.linear(x, weights(f"{name}/inner/kernel", (dim, inner)))
        activation = "FastGelu" if shape["activation"] == "gelu_tanh" else "BiasGelu"
        inner_bias = graph.weight(weights(f"{name}/inner/bias", (inner,)))
        hidden = graph.fused(activation, hidden, inner_bias)
        feed_forward = graph.linear(hidden, weights(f"{name}/outer/kernel", (inner, dim)))
        x = added(feed_forward, x, f"{name}/output_norm", f"{name}/outer/bias")
    if config["pooling"] not in _POOLINGS:
        raise ValueError(
            f"Expected one of the poolings {[*_POOLINGS]} for ONNX Runtime, found "
            f"{config['pooling']!r}. Load the model with backend='tensorflow'."
        )
    vector = graph.pooled(x, _POOLINGS[config["pooling"]])
    if config["dense"]:
        vector, dim = _projected(vector, dim, config["dense"], "projection", weights, graph)
    for number, each in enumerate(config.get("after", ())):
        vector, dim = _further(vector, dim, each, f"further_{number}", weights, graph)
    return graph.unit(vector, _UNIT) if config["normalize"] else vector, dim


def _mpnet(config: Config, table: Table, weights: Weights, graph: GraphWriter) -> tuple[str, int]:
    return _bert(config, table, weights, graph, bias=graph.input(BIAS))


def _projected(
    vector: str, dim: int, dense: Config, name: str, weights: Weights, graph: GraphWriter
) -> tuple[str, int]:
    """A dense layer after the pooling."""
    units = dense["units"]
    vector = graph.linear(vector, weights(f"{name}/kernel", (dim, units)))
    if dense["use_bias"]:
        vector = graph.add(vector, weights(f"{name}/bias", (units,)))
    activation = dense["activation"]
    if activation == "gelu":
        vector = graph.fused("Gelu", vector)
    elif activation != "linear":
        vector = graph.op(activation.title(), vector)
    return vector, units


def _further(
    vector: str, dim: int, config: Config, name: str, weights: Weights, graph: GraphWriter
) -> tuple[str, int]:
    """A layer after the first dense layer: another dense layer, or a layer norm."""
    if "epsilon" not in config:
        return _projected(vector, dim, config, name, weights, graph)
    return _norm(vector, name, weights, dim, graph, config["epsilon"]), dim


def _t5(config: Config, table: Table, weights: Weights, graph: GraphWriter) -> tuple[str, int]:
    shape = config["config"]
    if config["pooling"] == "decoder":
        raise ValueError(
            'Expected a Sentence-T5 of the pooling "mean" or "first", found one whose vectors are '
            "the decoder's. Load it with backend='tensorflow'."
        )
    dim, heads = shape["hidden_dim"], shape["num_heads"]
    width, inner = heads * shape["key_value_dim"], shape["intermediate_dim"]
    x, branch = _embedded(table, graph), ""

    def normed(name: str, x: str, branch: str) -> tuple[str, str]:
        """The RMS norm of `branch + x`, and this sum."""
        scale = graph.weight(weights(f"encoder/{name}/scale", (dim,)))
        if not branch:
            kind = "SimplifiedLayerNormalization"
            return str(graph.op(kind, x, scale, axis=-1, epsilon=_EPSILON)), x
        outputs = graph.fused(
            "SkipSimplifiedLayerNormalization", branch, x, scale, outputs=4, epsilon=_EPSILON
        )
        return outputs[0], outputs[3]

    for number in range(shape["num_layers"]):
        name = f"block_{number}"
        y, x = normed(f"{name}/attention_norm", x, branch)
        prefix = f"encoder/{name}"
        context = graph.attention(
            y,
            _roles(weights, f"{prefix}/attention", dim, width),
            heads=heads,
            scale=1.0,
            bias=graph.input(BIAS),
        )
        branch = graph.linear(context, weights(f"{prefix}/attention/output/kernel", (width, dim)))
        y, x = normed(f"{name}/feed_forward_norm", x, branch)
        prefix = f"{prefix}/feed_forward"
        hidden = graph.linear(y, weights(f"{prefix}/inner/kernel", (dim, inner)))
        if shape["activation"] == "gated_gelu":
            linear = graph.linear(y, weights(f"{prefix}/linear/kernel", (dim, inner)))
            hidden = graph.op("Mul", graph.fused("FastGelu", hidden), linear)
        else:
            hidden = graph.op("Relu", hidden)
        branch = graph.linear(hidden, weights(f"{prefix}/outer/kernel", (inner, dim)))
    y, _ = normed("norm", x, branch)
    vector = graph.pooled(y, config["pooling"])
    if config["projection_dim"]:
        vector = graph.linear(vector, weights("projection/kernel", (dim, config["projection_dim"])))
        dim = config["projection_dim"]
    return graph.unit(vector, _EPSILON) if config["normalize"] else vector, dim


_WRITERS: dict[str, Callable[[Config, Table, Weights, GraphWriter], tuple[str, int]]] = {
    "use_dan": _use_dan,
    "use_transformer": _use_transformer,
    "bert": _bert,
    "mpnet": _mpnet,
    "t5": _t5,
}
FAMILIES = tuple(_WRITERS)


def with_engine(folder: Path, manifest: ModelManifest | None, backend: str) -> ModelManifest:
    """Returns the manifest of a model, and checks that the model has an engine.

    Raises:
        ValueError: The SavedModel is not from use_st5, or belongs to a family without an engine.
    """
    if manifest is None or manifest.family is None:
        raise ValueError(
            f"{folder}: expected a model of use_st5 for backend={backend!r}, found a SavedModel "
            "without use_st5.json, or of an older version. Load it with backend='tensorflow'."
        )
    if manifest.family not in FAMILIES:
        raise ValueError(
            f"{folder}: backend={backend!r} runs the families {', '.join(FAMILIES)}, received a "
            f"model of the family {manifest.family}. Load it with backend='tensorflow'."
        )
    return manifest
