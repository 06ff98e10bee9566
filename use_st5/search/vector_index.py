"""An index: vectors of one model in a folder, for exact search or for search with FAISS."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol, get_args

import numpy as np

from use_st5._imports import require
from use_st5.encode.sentences import one_or_many
from use_st5.encode.similarity import cosine, unit_rows
from use_st5.hub.model_manifest import SimilarityName, short_hash
from use_st5.io.files import atomic_path, sole_writer
from use_st5.search import index_files
from use_st5.search.exact import exact_search, rescored
from use_st5.search.index_files import IndexRecord, Kind, OpenIndex

# The graph gives this many times k rows, which are then scored with the vectors. Measured with
# k = 10 among 100,000 lines of novels by use_dan_en: recall 0.967.
_BREADTH = 16

# The number of texts that are encoded again to check that the vectors are theirs, and the least
# cosine that confirms it.
_PROBES, _SAME = 16, 0.999


class Encoder(Protocol):
    """An object with these attributes, such as a model from `use_st5.load`."""

    @property
    def name(self) -> str:
        """The model's name."""

    @property
    def identity(self) -> str:
        """A hash of the content of the model's files."""

    @property
    def encode(self) -> Any:
        """Texts → vectors `[texts, dim]`."""


class VectorIndex:
    """Vectors of texts in a folder, all from one model.

    The index stores the name and hash of its model, and refuses other models. The files are memory
    maps: a search needs memory for a few blocks, apart from the system's file cache. For the kind
    "hnsw", the graph is in memory.

    The index stores a hash of each file. The graph and the beginnings of the texts are compared
    when the index is opened; `verify` compares all files.

    Args:
        folder: A folder that `build` wrote.

    Attributes:
        folder: The same.
        kind: "exact", or "hnsw", a graph (extra `search`) whose results are scored again with the
            vectors.
        model: The name of the model.
        model_hash: The `identity` of the model.
        dimension: The dimension of the vectors.

    Raises:
        FileNotFoundError: The folder contains no index.
        ValueError: The index is damaged.
        ImportError: The index is a graph, and FAISS is not installed.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self._files = OpenIndex(self.folder)
        record = self._files.record
        self.kind: Kind = "exact" if self._files.graph is None else "hnsw"
        self.model, self.model_hash = record.model, record.model_hash
        self.dimension = record.dimension

    @classmethod
    def build(
        cls,
        folder: str | os.PathLike[str],
        vectors: np.ndarray,
        *,
        encoder: Encoder,
        texts: Sequence[str] | None = None,
        kind: Kind = "exact",
    ) -> VectorIndex:
        """Writes an index to a folder; an existing index there is replaced in one step.

        Args:
            folder: The folder to write.
            vectors: `[rows, dim]`, preferably from `encode_document`; they are read in blocks, so
                they may be a memory map. They are scaled to length 1, unless the model's
                `similarity_fn_name` is "dot".
            encoder: The model that computed the vectors.
            texts: The texts of the vectors. They are stored, and some are encoded again to check
                that the vectors belong to them. None: the origin of the vectors is not checked.
            kind: "exact" or "hnsw".

        Raises:
            FileExistsError: `folder` exists and is not an index.
            BlockingIOError: Another process is writing the folder.
            ValueError: There are no vectors, or they are not finite, or not from the model.
            ImportError: The kind is "hnsw", and FAISS is not installed.
        """
        if kind not in get_args(Kind):
            raise ValueError(f"kind: expected exact or hnsw, received {kind}.")
        if kind == "hnsw":
            require("faiss", "search")
        vectors = np.asarray(vectors)
        if len(vectors.shape) != 2 or 0 in vectors.shape:
            raise ValueError(f"vectors: expected [rows, dim], received {list(vectors.shape)}.")
        if texts is not None:
            _check_origin(vectors, encoder, texts)
        target = Path(folder)
        with sole_writer(target):
            index_files.check_replaceable(target)
            with atomic_path(target) as temporary:
                temporary.mkdir()
                is_dot = getattr(encoder, "similarity_fn_name", None) == "dot"
                similarity: SimilarityName = "dot" if is_dot else "cosine"
                index_files.write_vectors(temporary, vectors, kind, similarity)
                if texts is not None:
                    index_files.write_texts(temporary, texts)
                rows, dimension = vectors.shape
                record = IndexRecord(
                    kind=kind,
                    model=encoder.name,
                    model_hash=encoder.identity,
                    dimension=dimension,
                    rows=rows,
                    similarity=similarity,
                )
                record.write(temporary)
        return cls(target)

    def __len__(self) -> int:
        """Number of vectors."""
        return self._files.record.rows

    @property
    def has_texts(self) -> bool:
        """Whether the index stores the texts."""
        return self._files.has_texts

    def text(self, row: int) -> str:
        """The text of a row.

        Raises:
            ValueError: The index has no texts, or they are damaged.
            IndexError: The row does not exist.
        """
        if not self.has_texts:
            raise ValueError(
                f"{self.folder}: expected an index with texts, found one without. Build it with "
                "texts=…."
            )
        if not 0 <= row < len(self):
            raise IndexError(f"Expected a row from 0 to {len(self) - 1}, received {row}.")
        return self._files.text(row)

    def verify(self) -> None:
        """Reads the whole index and compares it with its hashes.

        Raises:
            ValueError: A file is damaged; the message names it.
        """
        self._files.check()

    def check_model(self, encoder: Encoder) -> None:
        """Checks that an encoder is the model of the index.

        Raises:
            ValueError: It is another model.
        """
        if encoder.identity != self.model_hash:
            raise ValueError(
                f"{self.folder}: expected its model, {self.model} with the hash "
                f"{short_hash(self.model_hash)}, received {encoder.name} with "
                f"{short_hash(encoder.identity)}. "
                "Give the model of the index, or build the index again with this one."
            )

    def search(
        self, encoder: Encoder, texts: Iterable[str], *, k: int = 10, breadth: int | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Finds the rows nearest to texts; see `search_vectors`.

        The texts get the model's prompt for queries, if it has one (`encode_query`).

        Raises:
            ValueError: The encoder is not the model of the index, or see `search_vectors`.
        """
        self.check_model(encoder)
        encode = getattr(encoder, "encode_query", encoder.encode)
        return self.search_vectors(encode(one_or_many(texts)[0]), k=k, breadth=breadth)

    def search_vectors(
        self, queries: np.ndarray, *, k: int = 10, breadth: int | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Finds the rows with the largest cosines, or dot products if the model uses these.

        Args:
            queries: `[queries, dim]`, finite. They must come from the model of the index, which
                this method cannot check.
            k: Number of rows to find for each query; all, if there are fewer.
            breadth: Only for the kind "hnsw": the graph returns `breadth · k` rows, which are then
                scored with the vectors. A larger number finds more of the true neighbours. None:
                16.

        Returns:
            Cosines or dot products, float32 `[queries, k]`, the largest first, and rows, int64
            `[queries, k]`. For equal ones, the lower row comes first. If a graph finds fewer rows,
            the rest is −inf and −1.

        Raises:
            ValueError: The shape does not fit, numbers are not finite, `k` or `breadth` is below 1,
                or the index is damaged.
        """
        breadth = _BREADTH if breadth is None else breadth
        if k < 1 or breadth < 1:
            raise ValueError(f"Expected k and breadth from 1, received {k} and {breadth}.")
        queries = np.asarray(queries)
        if queries.ndim != 2 or queries.shape[1] != self.dimension:
            raise ValueError(
                f"queries: expected [queries, {self.dimension}] as {self.model} gives, received "
                f"{list(queries.shape)}."
            )
        if not np.isfinite(queries).all():
            raise ValueError("queries: expected finite numbers, received NaN or infinity.")
        is_cosine, k = self._files.record.similarity == "cosine", min(k, len(self))
        queries = (unit_rows(queries) if is_cosine else queries).astype(np.float32)
        if self._files.graph is None:
            longest = 1.0 if is_cosine else None
            return exact_search(queries, self._files.vectors, k=k, longest=longest)
        candidates = self._files.graph.near(queries, count=min(k * breadth, len(self)))
        return rescored(queries, self._files.vectors, candidates, k=k)


def _check_origin(vectors: np.ndarray, encoder: Encoder, texts: Sequence[str]) -> None:
    """Checks that vectors belong to texts, by encoding some of the texts again."""
    rows = vectors.shape[0]
    if len(texts) != rows:
        raise ValueError(f"texts: expected {rows:,}, one for each vector, received {len(texts):,}.")
    places = np.unique(np.linspace(0, rows - 1, min(rows, _PROBES)).astype(int)).tolist()
    probe_vectors, probe_texts = vectors[places], [texts[place] for place in places]
    # The vectors should have the prompt for documents, but may also have none.
    methods = (getattr(encoder, "encode_document", encoder.encode), encoder.encode)
    if not any(_are_same(np.asarray(encode(probe_texts)), probe_vectors) for encode in methods):
        raise ValueError(
            f"vectors: expected the vectors of {encoder.name} for these texts, received others "
            f"(checked on {len(places)} texts). Give the model and the texts of these vectors, in "
            "the same order and with the same prompt."
        )


def _are_same(own: np.ndarray, found: np.ndarray) -> bool:
    """Whether vectors have the same directions."""
    if own.shape != found.shape:
        return False
    # A zero vector has no direction, and a cosine of 0 with every other.
    zero = ~own.any(axis=1) & ~found.any(axis=1)
    return bool(np.all((cosine(own, found) >= _SAME) | zero))
