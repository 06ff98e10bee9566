"""A T5 encoder in NumPy on arrays with T5X's names; it is written from the paper."""

from __future__ import annotations

import numpy as np

Arrays = dict[str, np.ndarray]


def arrays(
    *, gated: bool = True, dim: int = 8, heads: int = 2, width: int = 3, hidden: int = 12
) -> Arrays:
    """Random arrays of two encoder layers, by their names in T5X."""
    rng = np.random.default_rng(5)
    shapes: dict[str, tuple[int, ...]] = {
        "token_embedder/embedding": (50, dim),
        "encoder/relpos_bias/rel_embedding": (heads, 32),
        "encoder/encoder_norm/scale": (dim,),
    }
    for layer in ("encoder/layers_0", "encoder/layers_1"):
        for name in ("query", "key", "value"):
            shapes[f"{layer}/attention/{name}/kernel"] = (dim, heads * width)
        shapes[f"{layer}/attention/out/kernel"] = (heads * width, dim)
        for name in ("attention", "mlp"):
            shapes[f"{layer}/pre_{name}_layer_norm/scale"] = (dim,)
        for name in ("wi_0", "wi_1") if gated else ("wi",):
            shapes[f"{layer}/mlp/{name}/kernel"] = (dim, hidden)
        shapes[f"{layer}/mlp/wo/kernel"] = (hidden, dim)
    return {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}


def encode(tensors: Arrays, ids: list[int]) -> np.ndarray:
    """The encoder's output for one text without padding, `[length, dim]`."""
    tensors = {name: tensor.astype(np.float64) for name, tensor in tensors.items()}
    x = tensors["token_embedder/embedding"][ids]
    table = tensors["encoder/relpos_bias/rel_embedding"]
    positions = np.arange(len(ids))
    bias = table[:, _bucket(positions[None, :] - positions[:, None], table.shape[1])]
    layer = 0
    while (prefix := f"encoder/layers_{layer}/") + "mlp/wo/kernel" in tensors:
        part = {name.removeprefix(prefix): tensor for name, tensor in tensors.items()}
        x = x + _attention(part, _norm(x, part["pre_attention_layer_norm/scale"]), bias)
        x = x + _feed_forward(part, _norm(x, part["pre_mlp_layer_norm/scale"]))
        layer += 1
    return _norm(x, tensors["encoder/encoder_norm/scale"])


def _attention(part: Arrays, x: np.ndarray, bias: np.ndarray) -> np.ndarray:
    heads, length, _ = bias.shape
    query, key, value = (
        (x @ part[f"attention/{name}/kernel"]).reshape(length, heads, -1)
        for name in ("query", "key", "value")
    )
    scores = np.einsum("qhd,khd->hqk", query, key) + bias
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    mixed = np.einsum("hqk,khd->qhd", weights, value).reshape(length, -1)
    return mixed @ part["attention/out/kernel"]


def _feed_forward(part: Arrays, x: np.ndarray) -> np.ndarray:
    if "mlp/wi/kernel" in part:
        hidden = np.maximum(x @ part["mlp/wi/kernel"], 0)
    else:
        gate = x @ part["mlp/wi_0/kernel"]
        gelu = gate / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (gate + 0.044715 * gate**3)))
        hidden = gelu * (x @ part["mlp/wi_1/kernel"])
    return hidden @ part["mlp/wo/kernel"]


def _norm(x: np.ndarray, scale: np.ndarray) -> np.ndarray:
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6) * scale


def _bucket(distance: np.ndarray, count: int) -> np.ndarray:
    """Half of the buckets are for keys behind, half for keys ahead; half of each are exact."""
    half = count // 2
    exact = half // 2
    far = np.log(np.maximum(np.abs(distance), 1) / exact) / np.log(128 / exact)
    far = np.minimum(exact + (far * (half - exact)).astype(int), half - 1)
    near = np.abs(distance)
    return np.where(near < exact, near, far) + half * (distance > 0)
