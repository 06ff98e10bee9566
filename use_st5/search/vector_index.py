"""An index: vectors of one model in a folder, with their texts and fields.

A graph (the kind "hnsw") is Malkov and Yashunin's, "Efficient and robust approximate nearest
neighbor search using Hierarchical Navigable Small World graphs" (arXiv 1603.09320).
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from use_st5._imports import require
from use_st5.encode.sentences import check_choice, one_or_many
from use_st5.encode.similarity import cosine, unit_rows
from use_st5.hub.model_manifest import FileEntry, SimilarityName, short_hash
from use_st5.io.files import atomic_path, file_sha256, sole_writer
from use_st5.io.records import InnerPath, Positive, read_record
from use_st5.search.exact import exact_search, rescored

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc

    from use_st5.search.fields import Fields
    from use_st5.search.words import WordIndex

Kind = Literal["exact", "hnsw", "binary"]

_FORMAT = 2
_RECORD, _VECTORS, _GRAPH, _CODES = "index.json", "vectors.npy", "graph.faiss", "codes.npy"
_TEXTS, _STARTS, _FIELDS = "texts.utf8", "starts.npy", "fields.parquet"
_WINDOWS = "windows.npy"
_REMEDY = "Make the index again with `use-st5 index … --overwrite` or VectorIndex.build."
# The number of rows that are written together.
_ROWS = 16_384

# Neighbours of a node, and the number of nodes that are examined to find them. Doubling the second
# number changed no recall that was measured.
_NEIGHBOURS, _EFFORT = 32, 40
# The number of rows from which the ranges of a graph's numbers are learnt.
_SAMPLE = 20_000
# A graph or the codes give this many times k rows, which are then scored with the vectors. Measured
# for a graph with k = 10 among 100,000 lines of novels by use_dan_en: recall 0.967.
_BREADTH = {"exact": 1, "hnsw": 16, "binary": 4}
# The ranks of the vectors and of the words that are joined, at least.
_FUSED = 100

# The number of texts that are encoded again to check that the vectors are theirs, and the least
# cosine that confirms it.
_PROBES, _SAME = 16, 0.999


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Record:
    """The record of an index, `index.json`, which is written last.

    `files` has the `bytes` and the `sha256` of each file, `windows` the number of vectors if texts
    may have several.
    """

    kind: Kind
    model: str
    model_hash: str
    dimension: Positive
    rows: Positive
    windows: Positive | None = None
    similarity: SimilarityName = "cosine"
    files: dict[InnerPath, FileEntry] = dataclasses.field(default_factory=dict)
    format: int = _FORMAT


class VectorIndex:
    """Vectors of texts in a folder, all from one model.

    The index stores the name and hash of its model, and refuses other models. The files are memory
    maps: a search needs memory for a few blocks, apart from the system's file cache. A graph and
    the codes are in memory; so are the fields and the words once they are used.

    The index stores the hash of each file. That of a graph is compared when the index is opened,
    that of the fields when they are read; `verify` compares all.

    A text that is longer than its model reads may have a vector for each of its windows: a search
    finds it by the best one. There is still one row for each text.

    Rows are counted from 0, in the order of the texts. `add` appends rows. `remove` makes the
    later rows move up, so keep an `id` field to name rows for longer.

    Args:
        folder: A folder that `build` wrote.

    Attributes:
        folder: The same.
        kind: "exact", or a faster search whose results are scored again with the vectors: "hnsw", a
            graph (extra `search`), or "binary", the signs of the numbers.
        model: The name of the model.
        model_hash: The `identity` of the model.
        dimension: The dimension of the vectors.
        metric: "cosine" or "dot".
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self._open()

    def _open(self) -> None:
        if not self.folder.exists() and self.folder.absolute().parent.is_dir():
            # Moves an index back whose writer was killed between two renames.
            with contextlib.suppress(OSError), sole_writer(self.folder):
                pass
        if not (self.folder / _RECORD).is_file():
            raise FileNotFoundError(f"{self.folder}: expected an index, found no {_RECORD}.")
        self._record = record = read_record(
            self.folder / _RECORD, _Record, remedy=_REMEDY, version=_FORMAT
        )
        self.kind: Kind = record.kind
        self.model, self.model_hash = record.model, record.model_hash
        self.dimension, self.metric = record.dimension, record.similarity
        count = record.windows or record.rows
        self._vectors = self._mapped(_VECTORS, (count, record.dimension), "float32")
        self._windows: np.ndarray | None = None
        if record.windows is not None:
            self.verify(_WINDOWS)  # Searches trust the numbers in it.
            self._windows = self._mapped(_WINDOWS, (count,), "int64")
        self._graph: Any = None
        if record.kind == "hnsw":
            faiss = require("faiss", "search")
            self.verify(_GRAPH)  # FAISS trusts the numbers in its file.
            self._graph = faiss.read_index(str(self.folder / _GRAPH))
        self._codes: np.ndarray | None = None
        if record.kind == "binary":
            words = -(-record.dimension // 64)
            self._codes = np.array(self._mapped(_CODES, (words, count), "uint64"))
        self._starts = None
        if _TEXTS in record.files:
            self._starts = self._mapped(_STARTS, (record.rows + 1,), "int64")
            path = self.folder / _TEXTS
            # Mapped, because another process may replace the index. An empty file cannot be mapped.
            self._text_bytes = (
                np.memmap(path, mode="r") if path.stat().st_size else np.empty(0, "u1")
            )
        self._fields: pa.Table | None = None
        self._words: WordIndex | None = None

    @classmethod
    def build(
        cls,
        folder: str | os.PathLike[str],
        vectors: np.ndarray,
        *,
        encoder: Any,
        texts: Sequence[str] | None = None,
        fields: Fields | None = None,
        windows: np.ndarray | None = None,
        kind: Kind = "exact",
        metric: SimilarityName | None = None,
    ) -> VectorIndex:
        """Writes an index to a folder; an existing index there is replaced in one step.

        Args:
            folder: The folder to write.
            vectors: `[rows, dim]`, preferably from `encode_document`; they are read in blocks, so
                they may be a memory map. They are scaled to length 1, unless the metric is "dot".
            encoder: The model that computed the vectors: an object with `encode`, `name`, and
                `identity`, a hash of its files.
            texts: The texts of the vectors. They are stored, and some are encoded again to check
                that the vectors belong to them. None: the origin of the vectors is not checked.
            fields: An Arrow table, or name → values, with a value for each row. A field named `id`
                or `_id` holds texts that name the rows.
            windows: The row of each vector, int64 `[vectors]`, ascending from 0, for an index of
                windows; see `encoder.document_windows`. None: each text has one vector.
            kind: "exact", "hnsw" or "binary".
            metric: "cosine" or "dot"; None: the model's own, `similarity_fn_name`.
        """
        if kind not in _BREADTH:
            raise ValueError(f"kind: expected exact, hnsw or binary, received {kind}.")
        chosen: Any = metric or getattr(encoder, "similarity_fn_name", "cosine")
        check_choice("metric", chosen, ("cosine", "dot"))
        if kind == "hnsw":
            require("faiss", "search")
        vectors = np.asarray(vectors)
        if len(vectors.shape) != 2 or 0 in vectors.shape:
            raise ValueError(f"vectors: expected [rows, dim], received {list(vectors.shape)}.")
        owners = _owners(windows, len(vectors))
        rows = int(owners[-1]) + 1
        _check_vectors_of(texts, vectors, owners, encoder, windows is not None)
        table = None
        if fields is not None:
            from use_st5.search.fields import field_table

            table = field_table(fields, rows)
        record = _Record(
            kind=kind,
            model=encoder.name,
            model_hash=encoder.identity,
            dimension=vectors.shape[1],
            rows=rows,
            windows=None if windows is None else len(owners),
            similarity=chosen,
        )
        target = Path(folder)
        with sole_writer(target):
            check_replaceable(target)
            blocks = _blocks(vectors, to_unit_length=chosen == "cosine")
            _write(target, record, blocks, owners, texts, table)
        return cls(target)

    def add(
        self,
        texts: Sequence[str] | None = None,
        *,
        encoder: Any,
        vectors: np.ndarray | None = None,
        fields: Fields | None = None,
        windows: np.ndarray | None = None,
        replace: bool = False,
    ) -> None:
        """Appends rows; the index on the disk is the old one until the new one is complete.

        The whole index is copied, and a graph is built anew, so add many rows in one call.

        Args:
            texts: The texts; None if the index was built without texts.
            encoder: The model of the index.
            vectors: Their vectors, as for `build`. None: the texts are encoded.
            fields: Values of the new rows. Fields of the index that are left out are missing in the
                new rows; others are an error.
            windows: The row of each of the `vectors` among the new ones, if the index has windows.
            replace: Whether rows whose id the index has are removed first. Otherwise such a row is
                an error.
        """
        from use_st5.search.fields import ids, joined_fields

        with sole_writer(self.folder):
            self._open()  # Another process may have changed it.
            self._check_model(encoder)
            if (texts is not None) != self.has_texts:
                raise ValueError(f"{self.folder}: expected texts if, and only if, it stores texts.")
            if vectors is not None and (windows is not None) != self.has_windows:
                raise ValueError(f"{self.folder}: expected windows if, and only if, it has some.")
            without_texts = np.asarray(vectors) if windows is None else np.unique(windows)
            size = len(without_texts if texts is None else texts)
            table = joined_fields(self.fields, fields, size)
            all_ids = ids(table)
            old_ids, new_ids = all_ids[: len(self)], {*all_ids[len(self) :]}
            known = [row for row, id in enumerate(old_ids) if id in new_ids]
            if known and not replace:
                raise ValueError(f"fields: expected new ids, the index has {old_ids[known[0]]!r}.")
            if vectors is None:
                vectors, windows = _encoded(encoder, texts or [], self.has_windows)
            vectors = np.asarray(vectors)
            owners = _owners(windows, len(vectors))
            if vectors.shape[1:] != (self.dimension,) or len(np.unique(owners)) != size:
                expected = f"expected {[size, self.dimension]}, received {[*vectors.shape]}"
                raise ValueError(f"vectors: {expected}.")
            _check_vectors_of(texts, vectors, owners, encoder, self.has_windows)
            self._rewrite(known, vectors, owners, texts, table)

    def remove(
        self,
        ids: Iterable[str] | None = None,
        *,
        rows: Iterable[int] | None = None,
        where: str | pc.Expression | None = None,
    ) -> int:
        """Removes rows, also from the disk; the rows after them move up.

        Args:
            ids: The ids of the rows. An unknown one is an error.
            rows: Instead of ids, the numbers of the rows.
            where: Instead of both, an expression as for `search`; it may match no row.

        Returns:
            The number of rows that were removed.
        """
        if (ids is None) + (rows is None) + (where is None) != 2:
            raise ValueError("expected ids, rows or where, and one of them only.")
        with sole_writer(self.folder):
            self._open()
            if where is not None:
                rows = self.matching_rows(where).tolist()
            if ids is not None:
                from use_st5.search import fields

                places = {id: row for row, id in enumerate(fields.ids(self.fields))}
                if unknown := [id for id in ids if id not in places]:
                    raise ValueError(f"{self.folder}: found no row with the id {unknown[0]!r}.")
                rows = [places[id] for id in ids]
            gone = sorted({*(rows or ())})
            if gone:
                self._rewrite(gone)
        return len(gone)

    def _rewrite(
        self,
        removed: Sequence[int],
        vectors: np.ndarray | None = None,
        owners: np.ndarray | None = None,
        texts: Iterable[str] | None = (),
        fields: pa.Table | None = None,
    ) -> None:
        """Writes the index without some rows, and with new ones; `fields` has those of all rows."""
        kept = np.delete(np.arange(len(self)), np.asarray(removed, np.int64))
        fields = self.fields if vectors is None else fields
        places = self._places(kept)
        all_owners = np.searchsorted(
            kept, places if self._windows is None else self._windows[places]
        )
        blocks = _blocks(self._vectors, places, to_unit_length=False)
        if vectors is not None and owners is not None:
            to_unit_length = self.metric == "cosine"
            blocks = itertools.chain(blocks, _blocks(vectors, to_unit_length=to_unit_length))
            all_owners = np.concatenate([all_owners, owners + len(kept)])
        if not len(all_owners):
            raise ValueError(f"{self.folder}: expected to keep a row. Delete the folder instead.")
        if fields is not None:
            fields = fields.take(np.delete(np.arange(len(fields)), np.asarray(removed, np.int64)))
        all_texts = itertools.chain(self.texts(kept), texts or ()) if self.has_texts else None
        windows = len(all_owners) if self.has_windows else None
        record = dataclasses.replace(self._record, rows=int(all_owners[-1]) + 1, windows=windows)
        _write(self.folder, record, blocks, all_owners, all_texts, fields)
        self._open()

    def __len__(self) -> int:
        """Number of rows: of texts, or of vectors if there are no windows."""
        return self._record.rows

    @property
    def has_texts(self) -> bool:
        """Whether the index stores the texts."""
        return self._starts is not None

    @property
    def has_windows(self) -> bool:
        """Whether a text may have several vectors."""
        return self._windows is not None

    def _places(self, rows: np.ndarray) -> np.ndarray:
        """The places of the vectors of rows; both are ascending."""
        if self._windows is None:
            return rows
        is_chosen = np.zeros(len(self), bool)
        is_chosen[rows] = True
        return np.flatnonzero(is_chosen[self._windows])

    @property
    def fields(self) -> pa.Table | None:
        """The fields of all rows; None if the index was built without fields."""
        if self._fields is None and _FIELDS in self._record.files:
            from pyarrow import parquet

            self.verify(_FIELDS)
            self._fields = parquet.read_table(self.folder / _FIELDS)
        return self._fields

    def field_values(self, row: int) -> dict[str, Any]:
        """The fields of a row by their names."""
        return {} if self.fields is None else self.fields.slice(row, 1).to_pylist()[0]

    def text(self, row: int) -> str:
        """The text of a row, if the index was built with texts."""
        return next(self.texts([row]))

    def texts(self, rows: Iterable[int] | None = None) -> Iterator[str]:
        """The texts of rows, or of all, if the index was built with texts."""
        if self._starts is None:
            raise ValueError(f"{self.folder}: expected an index with texts, found one without.")
        for row in range(len(self)) if rows is None else rows:
            start, end = self._starts[row : row + 2].tolist()
            yield self._text_bytes[start:end].tobytes().decode("utf-8", "surrogatepass")

    def verify(self, *names: str) -> None:
        """Compares files, or all, with their hashes; a ValueError names a damaged one."""
        for name in names or self._record.files:
            path, entry = self.folder / name, self._record.files.get(InnerPath(name))
            if not (entry and path.is_file() and file_sha256(path) == entry["sha256"]):
                raise ValueError(f"{path}: expected the bytes that were written. {_REMEDY}")

    def matching_rows(self, where: str | pc.Expression) -> np.ndarray:
        """The rows for whose fields an expression is true; see `search`."""
        from use_st5.search.fields import matching_rows

        if self.fields is None:
            raise ValueError(f"{self.folder}: expected an index with fields, found one without.")
        return matching_rows(self.fields, where)

    def search(
        self,
        encoder: Any,
        texts: Iterable[str],
        *,
        k: int = 10,
        breadth: int | None = None,
        where: str | pc.Expression | None = None,
        hybrid: bool = False,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Finds the rows nearest to texts; see `search_vectors`.

        The texts get the model's prompt for queries, if it has one (`encode_query`). An encoder
        that is not the model of the index is a ValueError.

        `hybrid` also ranks the texts by their words (BM25, extra `search`), and joins both rankings
        by reciprocal rank; the scores are then sums of 1 / (60 + rank). The words are counted in
        memory by the first such search.
        """
        self._check_model(encoder)
        queries, _ = one_or_many(texts)
        vectors = getattr(encoder, "encode_query", encoder.encode)(queries)
        words = queries if hybrid else None
        return self.search_vectors(vectors, k=k, breadth=breadth, where=where, words=words)

    def search_vectors(
        self,
        queries: np.ndarray,
        *,
        k: int = 10,
        breadth: int | None = None,
        where: str | pc.Expression | np.ndarray | None = None,
        words: Sequence[str] | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Finds the rows with the largest cosines, or dot products if this is the index's metric.

        Args:
            queries: `[queries, dim]`, finite. They must come from the model of the index, which
                this method cannot check.
            k: Number of rows to find for each query; all, if there are fewer.
            breadth: For the kinds "hnsw" and "binary": the graph or the codes return `breadth · k`
                rows, which are then scored with the vectors. A larger number finds more of the true
                neighbours. None: 16 for a graph, 4 for codes.
            where: Only rows for whose fields this is true are searched, without the graph:
                comparisons such as `domain == "law"`, `year >= 1990`, `lang in ["de", "fr"]` or
                `note is None`, joined by `and`, `or` and `not`; or an expression of
                `pyarrow.compute`; or the rows, ascending. A name that is no Python name is put in
                quotes. In a text, a missing value equals no value, and is neither less nor greater.
            words: The texts of the queries, for a hybrid search; None: by the vectors alone.

        Returns:
            Cosines or dot products, float32 `[queries, k]`, the largest first, and rows, int64
            `[queries, k]`. For equal ones, the lower row comes first. If a graph finds fewer rows,
            the rest is −inf and −1.
        """
        breadth = _BREADTH[self.kind] if breadth is None else breadth
        if k < 1 or breadth < 1:
            raise ValueError(f"Expected k and breadth from 1, received {k} and {breadth}.")
        among = where if isinstance(where, np.ndarray | None) else self.matching_rows(where)
        queries = np.asarray(queries)
        if queries.shape[1:] != (self.dimension,) or not np.isfinite(queries).all():
            shape = f"[queries, {self.dimension}] as {self.model} gives"
            raise ValueError(f"queries: expected finite {shape}, received {[*queries.shape]}.")
        if self.metric == "cosine":
            queries = unit_rows(queries)
        queries = np.ascontiguousarray(queries, np.float32)
        if words is None:
            return self._nearest(queries, k, breadth, among)
        from use_st5.search.words import WordIndex, reciprocal_ranks

        self._words = self._words or WordIndex(self.texts())
        depth = max(k, _FUSED)
        nearest = self._nearest(queries, depth, breadth, among)[1]
        scores = np.full((len(queries), min(k, nearest.shape[1])), -np.inf, np.float32)
        rows = np.full(scores.shape, -1, np.int64)
        for place, query in enumerate(words):
            worded = self._words.search(query, k=depth, rows=among)[1].tolist()
            near = [row for row in nearest[place].tolist() if row >= 0]
            joined = reciprocal_ranks(near, worded)
            best = sorted(joined, key=lambda row: (-joined[row], row))[: scores.shape[1]]
            rows[place, : len(best)] = best
            scores[place, : len(best)] = [joined[row] for row in best]
        return scores, rows

    def _nearest(
        self, queries: np.ndarray, k: int, breadth: int, among: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """The rows with the largest products; a row with several vectors has the best one's."""
        if self._windows is None:
            return self._nearest_vectors(queries, k, breadth, among)
        places = None if among is None else self._places(among)
        searched = len(self._windows if places is None else places)
        k = count = min(k, len(self) if among is None else len(among))
        while True:
            # More windows than rows, since one text may have many near ones.
            count = min(4 * count, searched)
            scores, windows = self._nearest_vectors(queries, count, breadth, places)
            owners = np.where(windows < 0, -1, self._windows[windows])
            best = _first_of_rows(scores, owners, k)
            if count == searched or (best[1] >= 0).all():
                return best

    def _nearest_vectors(
        self, queries: np.ndarray, k: int, breadth: int, among: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """The places of the vectors with the largest products, by the way of this index's kind."""
        searched = len(self._vectors) if among is None else len(among)
        k, count = min(k, searched), min(k * breadth, searched)
        if not k:
            return np.empty((len(queries), 0), np.float32), np.empty((len(queries), 0), np.int64)
        if self._codes is not None:
            candidates = _nearest_codes(queries, self._codes, count, among)
        elif self._graph is not None and among is None:
            effort = require("faiss", "search").SearchParametersHNSW(efSearch=count)
            candidates = self._graph.search(queries, count, params=effort)[1]
        else:
            return exact_search(queries, self._vectors, k=k, among=among)
        return rescored(queries, self._vectors, candidates, k=k)

    def _check_model(self, encoder: Any) -> None:
        if encoder.identity != self.model_hash:
            own = f"{self.model} with the hash {short_hash(self.model_hash)}"
            other = f"{encoder.name} with {short_hash(encoder.identity)}"
            raise ValueError(f"{self.folder}: expected its model, {own}, received {other}.")

    def _mapped(self, name: str, shape: tuple[int, ...], dtype: str) -> np.memmap:
        """Maps the array of a file, which is not read until it is needed."""
        path, problem = self.folder / name, ""
        try:
            array = np.load(path, mmap_mode="r")
        except Exception as error:  # NumPy's parser of headers raises many kinds of errors
            array, problem = np.empty(0), str(error)
        if array.shape != shape or array.dtype != dtype or not array.flags.c_contiguous:
            found = problem or f"{array.dtype} {list(array.shape)}"
            raise ValueError(f"{path}: expected {dtype} {list(shape)}, found {found}. {_REMEDY}")
        return array


def check_replaceable(folder: Path) -> None:
    """Checks that a new index in a folder replaces nothing but an older index."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    names = {path.name for path in folder.iterdir()} if folder.is_dir() else {"a file"}
    own = {_RECORD, _VECTORS, _GRAPH, _CODES, _TEXTS, _STARTS, _FIELDS, _WINDOWS}
    if _RECORD not in names or names - own:
        raise FileExistsError(f"Expected {folder} to contain only an index of use_st5.")


def _blocks(
    vectors: np.ndarray, rows: np.ndarray | None = None, *, to_unit_length: bool
) -> Iterator[np.ndarray]:
    """The rows of a matrix, or some of them, in parts."""
    for start in range(0, len(vectors if rows is None else rows), _ROWS):
        part = slice(start, start + _ROWS)
        block = np.asarray(vectors[part if rows is None else rows[part]])
        if not np.isfinite(block).all():
            raise ValueError(f"vectors: expected finite numbers from row {start}.")
        yield unit_rows(block) if to_unit_length else block


def _write(
    folder: Path,
    record: _Record,
    blocks: Iterable[np.ndarray],
    owners: np.ndarray,
    texts: Iterable[str] | None,
    fields: pa.Table | None,
) -> None:
    """Writes an index, or replaces one; `blocks` have all vectors, `owners` their rows."""
    with atomic_path(folder) as temporary:
        temporary.mkdir()
        shape, end = (len(owners), record.dimension), 0
        written = np.lib.format.open_memmap(temporary / _VECTORS, "w+", np.float32, shape)
        for block in blocks:
            written[end : end + len(block)] = block
            end += len(block)
        if record.windows is not None:
            np.save(temporary / _WINDOWS, owners)
        if record.kind == "hnsw":
            _write_graph(temporary / _GRAPH, written)
        elif record.kind == "binary":
            parts = [_codes(block) for block in _blocks(written, to_unit_length=False)]
            np.save(temporary / _CODES, np.concatenate(parts, axis=1))
        if texts is not None:
            _write_texts(temporary, texts, record.rows)
        if fields is not None:
            from pyarrow import parquet

            parquet.write_table(fields, temporary / _FIELDS)
        files = {
            InnerPath(path.name): FileEntry(bytes=path.stat().st_size, sha256=file_sha256(path))
            for path in sorted(temporary.iterdir())
        }
        text = json.dumps(dataclasses.asdict(dataclasses.replace(record, files=files)), indent=1)
        (temporary / _RECORD).write_text(text + "\n", encoding="utf-8")


def _write_graph(path: Path, vectors: np.ndarray) -> None:
    """Builds and writes a graph: one byte of memory per number and about 270 bytes per row."""
    faiss = require("faiss", "search")
    graph = faiss.IndexHNSWSQ(
        vectors.shape[1], faiss.ScalarQuantizer.QT_8bit, _NEIGHBOURS, faiss.METRIC_INNER_PRODUCT
    )
    graph.hnsw.efConstruction = _EFFORT
    sample = np.linspace(0, len(vectors) - 1, min(len(vectors), _SAMPLE)).astype(np.int64)
    graph.train(np.ascontiguousarray(vectors[sample]))
    for start in range(0, len(vectors), _ROWS):
        graph.add(np.ascontiguousarray(vectors[start : start + _ROWS]))
    faiss.write_index(graph, str(path))


def _codes(vectors: np.ndarray) -> np.ndarray:
    """Which numbers are above 0, uint64 `[words, rows]`; the bits after the last one are 0."""
    bits = np.packbits(vectors > 0, axis=1)
    padded = np.zeros((len(bits), -(-vectors.shape[1] // 64) * 8), np.uint8)
    padded[:, : bits.shape[1]] = bits
    return np.ascontiguousarray(padded.view(np.uint64).T)


def _nearest_codes(
    queries: np.ndarray, codes: np.ndarray, count: int, among: np.ndarray | None
) -> np.ndarray:
    """The rows whose codes differ from the queries' in the fewest bits, the lower row first."""
    codes = codes if among is None else codes[:, among]
    candidates = np.empty((len(queries), count), np.int64)
    for place, words in enumerate(_codes(queries).T):
        distances = np.zeros(codes.shape[1], np.uint16)
        for word, column in zip(words, codes, strict=True):
            distances += np.bitwise_count(column ^ word)
        candidates[place] = np.argsort(distances, kind="stable")[:count]
    return candidates if among is None else among[candidates]


def _write_texts(folder: Path, texts: Iterable[str], count: int) -> None:
    """Writes texts, one after the other, and the positions at which they begin."""
    starts = np.zeros(count + 1, np.int64)
    with (folder / _TEXTS).open("wb") as file:
        for row, text in enumerate(texts):
            starts[row + 1] = starts[row] + file.write(text.encode("utf-8", "surrogatepass"))
    np.save(folder / _STARTS, starts)


def _owners(windows: np.ndarray | None, count: int) -> np.ndarray:
    """The row of each vector: of windows, or its own."""
    if windows is None:
        return np.arange(count)
    owners = np.asarray(windows, np.int64)
    numbered = (np.diff(owners, prepend=-2) > 0).cumsum() - 1
    if len(owners) != count or not np.array_equal(owners, numbered):
        raise ValueError(f"windows: expected the rows of {count} vectors, ascending from 0.")
    return owners


def _first_of_rows(scores: np.ndarray, rows: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The first k different rows of each query, and their scores; −1 and −inf if it has fewer."""
    best_scores = np.full((len(rows), k), -np.inf, np.float32)
    best_rows = np.full((len(rows), k), -1, np.int64)
    for place, of_query in enumerate(rows):
        firsts = np.sort(np.unique(of_query, return_index=True)[1])
        firsts = firsts[of_query[firsts] >= 0][:k]
        best_scores[place, : len(firsts)] = scores[place, firsts]
        best_rows[place, : len(firsts)] = of_query[firsts]
    return best_scores, best_rows


def _encoded(
    encoder: Any, texts: Sequence[str], has_windows: bool
) -> tuple[np.ndarray, np.ndarray | None]:
    """The vectors of documents; or those of their windows, and the place of each one's text."""
    if not has_windows:
        return getattr(encoder, "encode_document", encoder.encode)(texts), None
    windows, owners = encoder.document_windows(texts)
    return encoder.encode(windows, prompt=""), owners


def _check_vectors_of(
    texts: Sequence[str] | None,
    vectors: np.ndarray,
    owners: np.ndarray,
    encoder: Any,
    has_windows: bool,
) -> None:
    """Checks that vectors belong to texts, of which some are encoded again."""
    if texts is None:
        return
    rows = int(owners.max(initial=-1)) + 1
    places = np.unique(np.linspace(0, rows - 1, min(rows, _PROBES)).astype(int))
    given = vectors[np.flatnonzero(np.isin(owners, places))]
    # The vectors should have the prompt for documents, but may also have none.
    ways = [lambda some: _encoded(encoder, some, has_windows)[0]]
    ways += [] if has_windows else [encoder.encode]
    for encode in ways if len(texts) == rows else ():
        own = np.asarray(encode([texts[place] for place in places]))
        if own.shape == given.shape:
            # A zero vector has no direction, and a cosine of 0 with every other.
            zero = ~own.any(axis=1) & ~given.any(axis=1)
            if np.all((cosine(own, given) >= _SAME) | zero):
                return
    expected = f"expected the vectors of {encoder.name} for these texts, in the same order"
    raise ValueError(f"vectors: {expected} and with the same prompt.")
