"""Writes ONNX graphs: a family (`models/NAME/engine.py`) adds the layers of its network.

A graph reads tokens without padding. All linear layers compute `[tokens, dim]`; only attention and
pooling see rows of texts, `[texts, length, dim]`: `places` says which token stands at each place.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from use_st5._imports import require
from use_st5.engines.weights import Weights

# Inputs of every graph, with their types and axes.
IDS, PLACES, ROWS, MASK = "ids", "places", "rows", "mask"
POSITIONS, LENGTHS, BIAS = "positions", "lengths", "position_bias"
MEANS = "means"  # of texts' rows: the only input of a USE-DAN's graph
OUTPUT = "embeddings"
_INT32, _INT64, _FLOAT = 6, 7, 1
_INPUTS: dict[str, tuple[int, tuple[str | int, ...]]] = {
    IDS: (_INT64, ("tokens",)),
    POSITIONS: (_INT64, ("tokens",)),
    PLACES: (_INT64, ("texts", "length")),
    ROWS: (_INT64, ("tokens",)),
    MASK: (_INT32, ("texts", "length")),
    LENGTHS: (_FLOAT, ("texts", 1)),
    BIAS: (_FLOAT, (1, "heads", "length", "length")),
    MEANS: (_FLOAT, ("texts", "width")),
}
EPSILON = 1e-6  # of most norms
_OPSET, _IR = 17, 9
_CONTRIB = "com.microsoft"
_EXCLUDED = -1e9


class GraphWriter:
    """Collects the nodes and weights of an encoder; values are named by numbers."""

    def __init__(self, weights: Weights | None = None) -> None:
        self._onnx = require("onnx", "onnx")
        self._layers = weights
        self._nodes: list[Any] = []
        self._weights: list[Any] = []
        self._inputs: set[str] = set()
        self._count = 0

    def layer(self, name: str, *shape: int) -> np.ndarray:
        """A weight of a layer of the model."""
        assert self._layers is not None
        return self._layers(name, shape)

    def input(self, name: str) -> str:
        """Uses one of the inputs above."""
        self._inputs.add(name)
        return name

    def weight(self, values: np.ndarray) -> str:
        """A constant."""
        name = self._name("weight")
        # Not ascontiguousarray, which gives a scalar an axis.
        values = np.asarray(values, order="C")
        self._weights.append(self._onnx.numpy_helper.from_array(values, name))
        return name

    def numbers(self, *values: int) -> str:
        """A constant int64 `[n]`."""
        return self.weight(np.array(values, np.int64))

    def op(self, kind: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        """Adds a node of ONNX's own operators; returns the names of its outputs."""
        return self._node("", kind, inputs, outputs, attributes)

    def fused(self, kind: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        """Adds a node of ONNX Runtime's operators; returns the names of its outputs."""
        return self._node(_CONTRIB, kind, inputs, outputs, attributes)

    def add(self, x: str, bias: np.ndarray) -> str:
        """`x + bias`."""
        return str(self.op("Add", x, self.weight(bias)))

    def linear(self, x: str, name: str, inputs: int, outputs: int, *, bias: bool = False) -> str:
        """`x · kernel`, or with `bias` `x · kernel + bias`, of a layer of the model."""
        y = self._product(x, self.layer(f"{name}/kernel", inputs, outputs))
        return self.add(y, self.layer(f"{name}/bias", outputs)) if bias else y

    def norm(self, x: str, name: str, dim: int, epsilon: float = EPSILON) -> str:
        """Layer normalization; after `Add` it is faster than a fused `SkipLayerNormalization`."""
        parts = [self.weight(self.layer(f"{name}/{part}", dim)) for part in ("gamma", "beta")]
        return str(self.op("LayerNormalization", x, *parts, axis=-1, epsilon=epsilon))

    def tokens(self) -> str:
        """The rows of the tokens in the model's table, float32 `[tokens, dim]`."""
        assert self._layers is not None
        table, ids = self._layers.table(), self.input(IDS)
        rows = self.op("Gather", self.weight(table.codes), ids, axis=0)
        if table.scales is None:
            return str(rows)
        scales = self.op("Gather", self.weight(table.scales[:, None]), ids, axis=0)
        return str(self.op("Mul", self.op("Cast", rows, to=1), scales))

    def at_positions(self, rows: np.ndarray) -> str:
        """The row of each token's position, `[tokens, dim]`."""
        return str(self.op("Gather", self.weight(rows), self.input(POSITIONS), axis=0))

    def attention(
        self,
        x: str,
        name: str,
        dim: int,
        inner: int,
        *,
        heads: int,
        scale: float,
        has_bias: bool = False,
        scores: str = "",
    ) -> str:
        """Multi-head self-attention without its output layer, `[tokens, dim]` → `[tokens, inner]`.

        `scale` is the factor of the scores; `scores`, `[1, heads, length, length]`, are added.
        """
        layers = [f"{name}/{role}" for role in ("query", "key", "value")]
        kernels = [self.layer(f"{layer}/kernel", dim, inner) for layer in layers]
        qkv = self._product(x, np.concatenate(kernels, axis=1))
        rows = self.op("Gather", qkv, self.input(PLACES), axis=0)
        sizes = self.numbers(inner, inner, inner)
        query, key, value = self.op("Split", rows, sizes, outputs=3, axis=-1)
        bias = ""
        if has_bias:
            bias = self.weight(np.concatenate([self.layer(f"{n}/bias", inner) for n in layers]))
        context = self.fused(
            "MultiHeadAttention",
            *(query, key, value, bias, self.input(MASK), scores),
            num_heads=heads,
            scale=scale,
            mask_filter_value=_EXCLUDED,
        )
        flat = self.op("Reshape", context, self.numbers(-1, inner))
        return str(self.op("Gather", flat, self.input(ROWS), axis=0))

    def pooled(self, x: str, how: str) -> str:
        """One vector for each text, `[tokens, dim]` → `[texts, dim]`.

        Args:
            x: The tokens.
            how: "mean", "scaled_sum" (by √length), "max" or "first".
        """
        if how == "first":
            first = self.op("Gather", self.input(PLACES), self.weight(np.array(0)), axis=1)
            return str(self.op("Gather", x, first, axis=0))
        rows = self.op("Gather", x, self.input(PLACES), axis=0)
        mask = self.op("Unsqueeze", self.input(MASK), self.numbers(2))
        is_token = self.op("Cast", mask, to=9)  # bool
        filler = np.finfo(np.float32).min if how == "max" else 0.0
        values = self.op("Where", is_token, rows, self.weight(np.array(filler, np.float32)))
        if how == "max":
            return str(self.op("ReduceMax", values, axes=[1], keepdims=0))
        total = self.op("ReduceSum", values, self.numbers(1), keepdims=0)
        length = self.input(LENGTHS)
        return str(self.op("Div", total, length if how == "mean" else self.op("Sqrt", length)))

    def unit(self, x: str, epsilon: float) -> str:
        """`x / sqrt(Σx² + epsilon)`."""
        squares = self.op("ReduceSum", self.op("Mul", x, x), self.numbers(-1), keepdims=1)
        length = self.op("Sqrt", self.add(squares, np.array(epsilon, np.float32)))
        return str(self.op("Div", x, length))

    def model(self, vectors: str, dimension: int, facts: dict[str, str]) -> Any:
        """The whole model, whose output is `vectors`; `facts` are its metadata."""
        helper = self._onnx.helper
        self._nodes.append(helper.make_node("Identity", [vectors], [OUTPUT]))
        inputs = [
            helper.make_tensor_value_info(name, *_INPUTS[name])
            for name in _INPUTS
            if name in self._inputs
        ]
        output = helper.make_tensor_value_info(OUTPUT, _FLOAT, ["texts", dimension])
        graph = helper.make_graph(self._nodes, "encoder", inputs, [output], self._weights)
        opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid(_CONTRIB, 1)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=_IR)
        helper.set_model_props(model, facts)
        return model

    def _product(self, x: str, kernel: np.ndarray) -> str:
        return str(self.op("MatMul", x, self.weight(kernel)))

    def _node(
        self, domain: str, kind: str, inputs: tuple[str, ...], outputs: int, attributes: Any
    ) -> Any:
        names = [self._name(kind) for _ in range(outputs)]
        node = self._onnx.helper.make_node(
            kind, list(inputs), names, self._name("node"), domain=domain, **attributes
        )
        self._nodes.append(node)
        return names[0] if outputs == 1 else names

    def _name(self, kind: str) -> str:
        self._count += 1
        return f"{kind}_{self._count}"
