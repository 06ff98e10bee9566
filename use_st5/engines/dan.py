"""A USE-DAN or a StaticEmbedding in NumPy alone, or with dense layers in int8 on ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from use_st5.engines.engine import Session
from use_st5.engines.onnx_graph import MEANS
from use_st5.engines.token_ids import FlatIds, open_tokenizer
from use_st5.engines.weights import TableRows, Weights, check_shape
from use_st5.engines.word_ids import NGramIds
from use_st5.hub.model_manifest import FILE_NAME, ModelManifest
from use_st5.tokenizers.ngram_vocabulary import NGramVocabulary

_EPSILON = 1e-12
_ELSE = "Load the model with backend='tensorflow'."
# Rows of the table that are gathered at once: 2.6 MB of float32, which fit into a CPU's cache.
_ROWS = 2048
# A text with more characters than this is read a piece at a time.
_LONG = 2**20
_ACTIVATIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "tanh": lambda x: np.tanh(x, out=x),
    "relu": lambda x: np.maximum(x, 0.0, out=x),
    "linear": lambda x: x,
}


class DANShape(NamedTuple):
    """The numbers of a USE-DAN, or of a StaticEmbedding, whose table may be all that it has."""

    width: int
    hidden_dims: list[int]
    activation: str
    normalize: bool

    @classmethod
    def of(cls, config: dict[str, Any]) -> Self:
        """Reads the `config` of a `use_st5.json`."""
        if "config" not in config:
            hidden = config.get("hidden_dims", [])
            activation = config.get("activation", "linear")
            return cls(config["dimension"], hidden, activation, config["normalize"])
        shape = config["config"]
        return cls(shape["embedding_dim"], shape["hidden_dims"], shape["activation"], True)


class DANEngine:
    """Runs a USE-DAN: the mean of a text's rows, then dense layers in residual blocks.

    Attributes:
        max_length: The most tokens of a text that are read; None if all are, as by all USE-DANs.
        rows: The rows of the token table.
        blocks: The kernels of each block: two, and a third for the projection if there is one.
    """

    def __init__(self, folder: Path, manifest: ModelManifest) -> None:
        width, dims, name, self._normalize = DANShape.of(manifest.config)
        if name not in _ACTIVATIONS:
            raise ValueError(f"{folder}: no engine has the activation {name!r}. {_ELSE}")
        self._activation = _ACTIVATIONS[name]
        self.max_length = manifest.max_length
        self._ids: NGramIds | FlatIds
        if manifest.tokenizer == "ngrams":
            self._ids = NGramIds(NGramVocabulary.load(folder / "assets" / "vocabulary.txt"))
            rows = self._ids.vocabulary.size
        else:
            tokens = open_tokenizer(manifest.tokenizer, folder / "assets")
            ignored = manifest.config.get("ignored_id", 0)
            self._ids = FlatIds(tokens, ignored, lambda: self.max_length)
            self.token_counts = self._ids.token_counts
            rows = manifest.config["num_embeddings"]
        weights = Weights(folder)
        table = weights.table()
        self.rows = TableRows(table, _ROWS)
        check_shape(folder, "embedding", table.shape, (rows, width))
        if len(dims) % 2:
            raise ValueError(f"{folder / FILE_NAME}: {len(dims)} hidden_dims, not two a block.")
        self.blocks = []
        for block in range(len(dims) // 2):
            first, last = dims[2 * block : 2 * block + 2]
            names = [f"hidden_{2 * block}", f"hidden_{2 * block + 1}", f"projection_{block}"]
            shapes = [(width, first), (first, last), (width, last)]
            kernels = [
                weights(f"network/feed_forward/{name}/kernel", shape)
                for name, shape in zip(names, shapes, strict=True)
                if width != last or not name.startswith("projection")
            ]
            self.blocks.append(kernels)
            width = last
        weights.check_all_read()
        self.dimension: int = width

    def run(self, texts: list[str]) -> np.ndarray:
        """The vectors of a batch of texts, float32 `[texts, dimension]`."""
        if len(texts) == 1:
            mean = self._mean(self._ids.blocks(texts[0]))
            return self._network(mean.astype(np.float32)[None])
        means = self._means(["" if len(text) > _LONG else text for text in texts])
        for row, text in enumerate(texts):
            if len(text) > _LONG:
                means[row] = self._mean(self._ids.blocks(text))
        return self._network(means)

    def _means(self, texts: list[str]) -> np.ndarray:
        """The mean of each text's rows, float32 `[texts, width]`."""
        mean = np.empty((len(texts), self.rows.table.shape[1]), np.float32)
        ids, starts = self._ids.flat(texts)
        shares = (1.0 / np.maximum(np.diff(starts), 1)).astype(np.float32)
        offsets = starts.tolist()
        first = 0
        while first < len(texts):
            last = max(first + 1, int(np.searchsorted(starts, offsets[first] + _ROWS, "right")) - 1)
            begin, end = offsets[first], offsets[last]
            if end - begin > _ROWS:
                mean[first] = self._mean([ids[begin:end]])
                first = last
                continue
            rows, scales = self.rows(ids[begin:end])
            for text in range(first, last):
                at, to = offsets[text] - begin, offsets[text + 1] - begin
                np.matmul(scales[at:to], rows[at:to], out=mean[text])
            mean[first:last] *= shares[first:last, None]
            first = last
        return mean

    def _mean(self, blocks: Iterable[np.ndarray]) -> np.ndarray:
        """The mean of the rows of all ids of a text, summed in float64."""
        total, count = np.zeros(self.rows.table.shape[1]), 0
        for block in blocks:
            for at in range(0, len(block), _ROWS):
                rows, scales = self.rows(block[at : at + _ROWS])
                total += scales @ rows
            count += len(block)
        return total / max(count, 1)

    def _network(self, x: np.ndarray) -> np.ndarray:
        for first, second, *projection in self.blocks:
            branch = self._activation(self._activation(x @ first) @ second)
            branch += x @ projection[0] if projection else x
            x = branch
        if not self._normalize:
            return x
        lengths = np.einsum("bd,bd->b", x, x)
        x *= (1.0 / np.sqrt(lengths + np.float32(_EPSILON)))[:, None]
        return x


class GraphDANEngine(DANEngine):
    """A USE-DAN whose dense layers ONNX Runtime computes.

    Attributes:
        session: The graph.
    """

    def __init__(self, model: Path, folder: Path, manifest: ModelManifest) -> None:
        super().__init__(folder, manifest)
        self.session = Session(model)

    def _network(self, x: np.ndarray) -> np.ndarray:
        return self.session.run({MEANS: x})
