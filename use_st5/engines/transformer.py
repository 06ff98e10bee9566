"""Transformers on ONNX Runtime."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from use_st5.engines import onnx_graph as names
from use_st5.engines.engine import Session
from use_st5.engines.token_ids import open_tokenizer
from use_st5.engines.weights import Weights
from use_st5.hub.model_manifest import ModelManifest

# Tokens that are computed at once: more make matrix products no faster, but fit less into caches.
_TOKENS = 1024


class TransformerEngine:
    """Runs a Transformer on ONNX Runtime; it computes only tokens, no padding.

    Args:
        model: The file of its graph (`use_st5.engines.onnx_model`).
        folder: The folder of its SavedModel.
        manifest: The content of its `use_st5.json`.
        bias: If the attention scores have a bias by distance, the name of its table, and the number
            of its buckets in the model's configuration.

    Attributes:
        session: The session that runs its graph.
    """

    def __init__(
        self,
        model: Path,
        folder: Path,
        manifest: ModelManifest,
        *,
        bias: tuple[str, str] | None = None,
    ) -> None:
        self.session = Session(model)
        self._tokens = open_tokenizer(manifest.tokenizer, folder / "assets")
        self.dimension = manifest.dimension
        shape = manifest.config["config"]
        # The limit of the model's texts, and the number of its positions.
        limits = [manifest.max_length, shape.get("max_positions"), shape.get("max_length")]
        self.max_length: int | None = min((each for each in limits if each), default=None)
        self._bias: _PositionBias | None = None
        if bias is not None:
            name, buckets = bias
            table = Weights(folder)(name, (shape[buckets], shape["num_heads"]))
            self._bias = _PositionBias(table, shape.get("max_distance", 128))

    def run(self, texts: list[str]) -> np.ndarray:
        """The vectors of a batch of texts, float32 `[texts, dimension]`."""
        ids = self._tokens.ids(texts, self.max_length)
        lengths = np.fromiter(map(len, ids), np.int64, len(ids))
        if len(ids) == 1 or lengths.sum() <= _TOKENS:
            return self._vectors(ids, lengths)
        vectors = np.empty((len(texts), self.dimension), np.float32)
        order = np.argsort(lengths, kind="stable")
        ends = np.cumsum(lengths[order])
        first = 0
        while first < len(order):
            start = ends[first] - lengths[order[first]]
            last = max(first + 1, int(np.searchsorted(ends, start + _TOKENS, "right")))
            rows = order[first:last]
            vectors[rows] = self._vectors([ids[row] for row in rows], lengths[rows])
            first = last
        return vectors

    def token_counts(self, texts: list[str]) -> np.ndarray:
        """The tokens of each text before any is cut, int64 `[texts]`."""
        return np.fromiter(map(len, self._tokens.ids(texts)), np.int64, len(texts))

    def _vectors(self, ids: list[list[int]], lengths: np.ndarray) -> np.ndarray:
        max_length = int(lengths.max())
        columns = np.arange(max_length)
        is_token = columns < lengths[:, None]
        rows = np.flatnonzero(is_token)
        starts = np.cumsum(lengths) - lengths
        inputs: dict[str, np.ndarray] = {
            names.IDS: np.array([each for row in ids for each in row], np.int64),
            names.POSITIONS: rows % max_length,
            names.PLACES: np.where(is_token, starts[:, None] + columns, 0),
            names.ROWS: rows,
            names.MASK: is_token.astype(np.int32),
            names.LENGTHS: lengths[:, None].astype(np.float32),
        }
        if self._bias is not None:
            inputs[names.BIAS] = self._bias.of_length(max_length)
        return self.session.run({name: inputs[name] for name in self.session.inputs})


class _PositionBias:
    """The bias of the attention scores of T5 and MPNet, by the distance of two positions."""

    def __init__(self, table: np.ndarray, max_distance: int) -> None:
        self._table, self._distance = table, max_distance
        # Length and bias are one attribute, because threads share it.
        self._last = (0, np.zeros(0))

    def of_length(self, length: int) -> np.ndarray:
        """The bias, float32 `[1, heads, length, length]`."""
        last_length, bias = self._last
        if length != last_length:
            # The bucket of each distance, as `use_st5.layers.positions` computes it.
            distances = np.arange(1 - length, length)
            half = len(self._table) // 2
            exact = half // 2
            size = np.abs(distances)
            one = np.float32(1.1920929e-07)
            ratio = np.maximum(size, 1).astype(np.float32) / np.float32(exact) + one
            scale = np.float32((half - exact) / np.log(self._distance / exact))
            far = np.minimum(exact + (np.log(ratio) * scale).astype(np.int32), half - 1)
            buckets = np.where(distances > 0, half, 0) + np.where(size < exact, size, far)
            values = self._table[buckets].T
            windows = np.lib.stride_tricks.sliding_window_view(values, length, axis=1)
            # Row q has the distances -q … length - 1 - q.
            bias = np.ascontiguousarray(windows[:, ::-1])[None]
            self._last = (length, bias)
        return bias
