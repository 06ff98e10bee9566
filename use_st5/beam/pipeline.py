"""The pipeline: files to rows, rows to tables of vectors, tables to a folder of Parquet files.

The folder lies on any file system that Beam has. A run writes into its own folder inside it. When
everything is written and counted, a record names the new files. Then the older files are removed,
and the new ones are moved to their places, the report last. If a run is killed after the record,
the next run does the rest.

The model is called in our own step and not by Beam's `RunInference`, because that sets aside whole
batches ("dead letters"). Here only the text that has no vector is set aside, the texts of a call
stay one table, and the counts are kept or made anew together with the vectors.
"""

from __future__ import annotations

import contextlib
import json
import posixpath
import re
import secrets
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
from pyarrow import parquet

from use_st5._imports import require
from use_st5.beam.model import ModelSource
from use_st5.beam.rows import REPORT, BadRow, RowReader, TextRow, as_text, fault
from use_st5.encode.sentences import check_batch_size
from use_st5.io.files import atomic_path, sole_writer
from use_st5.io.records import parse_record
from use_st5.io.streams import in_chunks

beam: Any = require("apache_beam", "beam")
_files: Any = require("apache_beam.io.filesystems", "beam").FileSystems
_PLAIN: Any = require("apache_beam.io.filesystem", "beam").CompressionTypes.UNCOMPRESSED
_sink: Any = require("apache_beam.io.filebasedsink", "beam")

_DoFn: Any = beam.DoFn
_PTransform: Any = beam.PTransform
_FileBasedSink: Any = _sink.FileBasedSink

_COUNTERS = "use_st5"
_BAD, _TALLY = "bad", "tally"
_TALLY_FILE = "tally.json"
_WRITTEN = r"vectors-\d+-of-\d+\.parquet|bad-\d+-of-\d+\.jsonl|embeddings\.json|tally\.json"
# The folder of a run, and the record that makes its files the valid ones.
_NEW, _RECORD = ".use_st5.new-", ".use_st5.new.json"
# The places where a run keeps its files until all are written; version 0.2 used no folder for this.
_TEMPORARY = (
    f"{_NEW}*",
    *("beam-temp-vectors-*", "beam-temp-bad-*", "beam-temp-tally.json-*"),
)
# One call of the encoder gets at most this much, sorts it by length and cuts it into batches.
_BLOCK_ROWS, _BLOCK_CHARACTERS = 4096, 4_000_000
_NOT_FINITE = "the model gives numbers that are not finite"
# The size of a row in addition to its characters, in characters; above all, its vector.
_ROW = 1000


class Embedded(NamedTuple):
    """The result of embedding rows.

    Attributes:
        vectors: A collection of `pyarrow.Table` with the columns of `vector_schema`, some thousand
            rows each.
        bad: A collection of `BadRow`, each with its reason.
    """

    vectors: Any
    bad: Any


class Counted(NamedTuple):
    """The product of a step, its bad rows and its counts.

    Attributes:
        made: The product.
        bad: A collection of `BadRow`.
        tally: A collection of numbers by name, to be summed. The runner's counters show the same
            during the run, but some runners count repeated work twice. The outputs of a bundle
            count once.
    """

    made: Any
    bad: Any
    tally: Any


class Block(NamedTuple):
    """Rows that are embedded by one call."""

    ids: list[str]
    texts: list[str]


def vector_schema(source: ModelSource) -> Any:
    """Returns the columns `id`, `text` and `embedding` (a list of float32), with model metadata."""
    columns = [("id", pa.string()), ("text", pa.string()), ("embedding", pa.list_(pa.float32()))]
    facts = {"model": source.name, "model_hash": source.model_hash}
    if source.prompt:
        facts["prompt"] = source.prompt
    return pa.schema(columns, metadata=facts)


class EmbedTexts(_PTransform):
    """Turns pairs of id and text into `Embedded`; see `embed_texts`."""

    def __init__(self, source: ModelSource, batch_size: int | None) -> None:
        super().__init__()
        self._embedding = EmbedBlocks(source, batch_size)

    def expand(self, pairs: Any) -> Embedded:
        """Sets aside bad pairs, makes blocks of the others and embeds them."""
        checked = pairs | "check" >> beam.ParDo(_Check()).with_outputs(_BAD, main="good")
        blocks = checked.good | "gather" >> beam.BatchElements(
            min_batch_size=_BLOCK_CHARACTERS,
            max_batch_size=_BLOCK_CHARACTERS,
            element_size_fn=_size,
        )
        embedded = blocks | "block" >> beam.Map(_as_block) | "embed" >> self._embedding
        bad = (checked[_BAD], embedded.bad) | "all bad" >> beam.Flatten()
        return Embedded(embedded.made, bad)


class EmbedBlocks(_PTransform):
    """Turns blocks of rows into tables."""

    def __init__(self, source: ModelSource, batch_size: int | None) -> None:
        super().__init__()
        if batch_size is not None:
            check_batch_size(batch_size)
        self._source, self._batch_size = source, batch_size

    def expand(self, blocks: Any) -> Counted:
        """Adds only one step, so that all outputs of a bundle are kept or made anew together."""
        return _counted(blocks | "each" >> _outputs(_Embed(self._source, self._batch_size)))


class ReadBlocks(_PTransform):
    """Turns the files that match a pattern into blocks of rows and bad rows."""

    def __init__(self, pattern: str, reader: RowReader) -> None:
        super().__init__()
        self._pattern, self._reader = pattern, reader

    def expand(self, start: Any) -> Counted:
        """Lets one worker read each file; the blocks go to any worker that has time."""
        blocks, bad, tally = _counted(
            start
            | "pattern" >> beam.Create([self._pattern])
            | "match" >> beam.FlatMap(matched)
            | "spread files" >> beam.Reshuffle()
            | "read" >> _outputs(_Read(self._reader))
        )
        return Counted(blocks | "spread blocks" >> beam.Reshuffle(), bad, tally)


class VectorSink(_FileBasedSink):
    """Writes tables of vectors to Parquet: one file per bundle; they get names when all exist."""

    def __init__(self, prefix: str, schema: Any) -> None:
        super().__init__(prefix, coder=None, file_name_suffix=".parquet", compression_type=_PLAIN)
        self._schema = schema

    def open(self, temp_path: str) -> tuple[Any, Any]:
        """Opens a file, and a writer of tables into it."""
        file = super().open(temp_path)
        # A dictionary of numbers that all differ would take a third of the processor time here.
        writer = parquet.ParquetWriter(
            file, self._schema, compression="snappy", use_dictionary=False
        )
        return file, writer

    def write_record(self, opened: tuple[Any, Any], table: Any) -> None:
        """Adds a table as a row group."""
        opened[1].write_table(table)

    def close(self, opened: tuple[Any, Any]) -> None:
        """Closes the writer and the file."""
        file, writer = opened
        writer.close()
        file.close()


class _Check(_DoFn):
    """Passes pairs of texts on, and sets everything else aside."""

    def process(self, pair: Any) -> Iterator[Any]:
        try:
            name, text = pair
        except (TypeError, ValueError):
            yield _bad(BadRow.of("", "expected a pair of id and text", pair))
            return
        if reason := fault(name, text):
            yield _bad(BadRow.of(str(name), reason, text))
        else:
            yield TextRow(as_text(name, "id"), as_text(text, "text"))


class _Read(_DoFn):
    """Turns a file, by its path and the name that its rows' ids begin with, into blocks."""

    def __init__(self, reader: RowReader) -> None:
        self._reader = reader

    def process(self, file: tuple[str, str]) -> Iterator[Any]:
        path, name = file
        bad_rows = 0
        with _files.open(path, compression_type=_PLAIN) as opened:
            rows = self._reader.rows(opened, name)
            for chunk in in_chunks(
                rows, rows=_BLOCK_ROWS, characters=_BLOCK_CHARACTERS, length=_characters
            ):
                good_rows = [row for row in chunk if isinstance(row, TextRow)]
                yield from (_bad(row) for row in chunk if isinstance(row, BadRow))
                bad_rows += len(chunk) - len(good_rows)
                if good_rows:
                    yield _as_block(good_rows)
        yield _tally(files=1)
        yield beam.pvalue.TaggedOutput(_TALLY, {"bad_rows": bad_rows})


class _Embed(_DoFn):
    """Turns a block of rows into a table."""

    def __init__(self, source: ModelSource, batch_size: int | None) -> None:
        self._source = source
        self._options: dict[str, Any] = {"prompt": source.prompt}
        if batch_size is not None:
            self._options["batch_size"] = batch_size

    def setup(self) -> None:
        self._encoder = self._source.load()
        self._schema = vector_schema(self._source)

    def process(self, block: Block) -> Iterator[Any]:
        ids, texts = block
        vectors = self._encoder.encode(
            texts, on_truncation="ignore", show_progress=False, **self._options
        )
        finite = np.isfinite(vectors).all(axis=1)
        faulty = np.flatnonzero(~finite)
        for row in faulty:
            yield _bad(BadRow.of(ids[row], _NOT_FINITE, texts[row]))
        if len(faulty):
            finite_rows = np.flatnonzero(finite)
            ids, texts = [ids[row] for row in finite_rows], [texts[row] for row in finite_rows]
            vectors = vectors[finite_rows]
            yield beam.pvalue.TaggedOutput(_TALLY, {"bad_rows": len(faulty)})
        if texts:
            yield as_table(ids, texts, vectors, self._schema)
        yield _tally(
            rows=len(texts),
            truncated=len(self._encoder.truncated([self._source.prompt + text for text in texts])),
            characters=sum(map(len, texts)),
        )
        beam.metrics.Metrics.distribution(_COUNTERS, "rows_of_a_call").update(len(texts))


def as_table(ids: list[str], texts: list[str], vectors: np.ndarray, schema: Any) -> Any:
    """Returns rows with vectors `[rows, dimension]` as a `pyarrow.Table`, without copying them."""
    rows, dimension = vectors.shape
    starts = pa.array(np.arange(rows + 1, dtype=np.int32) * dimension)
    numbers = pa.array(np.ascontiguousarray(vectors, np.float32).ravel())
    embedding = pa.ListArray.from_arrays(starts, numbers)
    return pa.table([pa.array(ids), pa.array(texts), embedding], schema=schema)


def matched(pattern: str) -> list[tuple[str, str]]:
    """Returns the files of a pattern: path, and the part after the pattern's fixed folders.

    Raises:
        FileNotFoundError: There are none.
    """
    paths = [each.path for each in _files.match([pattern])[0].metadata_list]
    if not paths:
        raise FileNotFoundError(f"Expected files, found none for {pattern}.")
    root = posixpath.dirname(re.split(r"[*?\[{]", pattern, maxsplit=1)[0])
    return [(path, path.removeprefix(root).lstrip("/")) for path in sorted(paths)]


def summed(tallies: Iterable[dict[str, int]]) -> dict[str, int]:
    """Sums the numbers of the same name."""
    total: Counter[str] = Counter()
    for tally in tallies:
        total.update(tally)
    return dict(total)


def _outputs(step: Any) -> Any:
    return beam.ParDo(step).with_outputs(_BAD, _TALLY, main="made")


def _counted(found: Any) -> Counted:
    return Counted(found.made, found[_BAD], found[_TALLY])


def _bad(row: BadRow) -> Any:
    beam.metrics.Metrics.counter(_COUNTERS, "bad_rows").inc()
    return beam.pvalue.TaggedOutput(_BAD, row)


def _tally(**numbers: int) -> Any:
    for name, number in numbers.items():
        beam.metrics.Metrics.counter(_COUNTERS, name).inc(number)
    return beam.pvalue.TaggedOutput(_TALLY, numbers)


def _as_block(rows: list[TextRow]) -> Block:
    return Block([row[0] for row in rows], [row[1] for row in rows])


def _characters(row: TextRow | BadRow) -> int:
    return len(row.text if isinstance(row, TextRow) else row.content)


def _size(row: TextRow) -> int:
    return _ROW + len(row.text)


class _Record(msgspec.Struct):
    """The new files of a run that will replace the older ones."""

    run: Annotated[str, msgspec.Meta(pattern=rf"^{re.escape(_NEW)}[0-9a-f]+\Z")]
    files: list[Annotated[str, msgspec.Meta(pattern=rf"^({_WRITTEN})\Z")]]
    format: int = 1


class CorpusFolder:
    """A folder with files of vectors, files of bad rows, and the report of a complete corpus.

    Args:
        folder: A path or a URL.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder.rstrip("/") or "/"
        self._local = None if "://" in folder else Path(folder)
        self._run = f"{_NEW}{secrets.token_hex(6)}"

    @contextlib.contextmanager
    def sole_writer(self) -> Iterator[None]:
        """Creates the folder and lets only this block write it; a remote folder has no lock.

        Raises:
            OSError: The folder cannot be created, or another process is writing it.
        """
        if self._local is None:
            yield
            return
        with sole_writer(self._local, inside=True):
            yield

    def make_room(self, *, overwrite: bool) -> None:
        """Finishes the last steps of a killed run, or removes its incomplete files.

        Older vectors stay until `finish`.

        Raises:
            FileExistsError: There are older vectors, and `overwrite` is False.
        """
        self._swap()
        older = self._names("")
        if older and not overwrite:
            raise FileExistsError(
                f"Expected a folder without vectors, found {self._path(min(older))}. Choose "
                "another folder, or give overwrite=True (--overwrite)."
            )
        self.remove_leftovers()

    def remove_leftovers(self) -> None:
        """Removes the leftovers of killed runs from a local folder.

        In a remote folder another run may be writing, because there is no lock.
        """
        if self._local is not None:
            for path in (each for name in _TEMPORARY for each in self._local.glob(name)):
                shutil.rmtree(path, ignore_errors=True)

    def write(self, read: Counted, embedded: Counted, source: ModelSource) -> None:
        """Adds steps to the pipeline that write the vectors, the bad rows and the tally."""
        sink = VectorSink(self._new("vectors"), vector_schema(source))
        _ = embedded.made | "write vectors" >> beam.io.Write(sink)
        _ = (
            (read.bad, embedded.bad)
            | "all bad rows" >> beam.Flatten()
            | "as json" >> beam.Map(BadRow.as_json)
            | "write bad rows"
            >> beam.io.WriteToText(self._new("bad"), ".jsonl", skip_if_empty=True)
        )
        _ = (
            (read.tally, embedded.tally)
            | "all tallies" >> beam.Flatten()
            | "sum" >> beam.CombineGlobally(summed)
            | "tally as json" >> beam.Map(json.dumps)
            | "write tally"
            >> beam.io.WriteToText(self._new(_TALLY_FILE), num_shards=1, shard_name_template="")
        )

    def counted(self) -> dict[str, int]:
        """Returns the final counts of a pipeline, by name.

        Raises:
            RuntimeError: The files of vectors have another number of rows.
        """
        with _files.open(self._new(_TALLY_FILE)) as file:
            tally = json.loads(file.read())
        rows = self._rows()
        if rows != tally.get("rows", 0):
            raise RuntimeError(
                f"Expected {tally['rows']:,} rows in {self._folder}, as many as were embedded, "
                f"found {rows:,}. Another process changed it; embed the corpus again."
            )
        return tally

    def _rows(self) -> int:
        """Counts the rows in all files of vectors, by the metadata at the end of each."""
        total = 0
        for name in self._names(self._run):
            if name.endswith(".parquet"):
                with _files.open(self._new(name)) as file:
                    total += parquet.read_metadata(file).num_rows
        return total

    def finish(self, report: str) -> None:
        """Writes the report, which holds the tally, and replaces the older files by the new ones.

        Raises:
            OSError: A file could not be moved; the next run does the rest.
        """
        _files.delete([self._new(_TALLY_FILE)])
        self._write(self._new(REPORT), report)
        files = sorted(self._names(self._run))
        record = msgspec.json.encode(_Record(self._run, files)).decode()
        self._write(self._path(_RECORD), record)
        self._swap()

    def _swap(self) -> None:
        """Moves the files that a record names to their places, if there is a record."""
        path = self._path(_RECORD)
        if not _files.exists(path):
            return
        with _files.open(path) as file:
            content = file.read()
        remedy = "Remove it, and embed the corpus again."
        record = parse_record(content, _Record, where=path, remedy=remedy)
        waiting = self._names(record.run).intersection(record.files)
        # New files that no longer wait are already in their places.
        older = self._names("").difference(set(record.files) - waiting)
        for names in ([REPORT], sorted(older - {REPORT})):
            if old_paths := [self._path(name) for name in names if name in older]:
                _files.delete(old_paths)
        for names in (sorted(waiting - {REPORT}), [REPORT]):
            moved_names = [name for name in names if name in waiting]
            if moved_names:
                places = [self._path(name) for name in moved_names]
                _files.rename([self._path(record.run, name) for name in moved_names], places)
        _files.delete([path])
        self.remove_leftovers()

    def _write(self, path: str, text: str) -> None:
        if self._local is not None:
            with atomic_path(path) as temporary:
                temporary.write_text(text, encoding="utf-8")
            return
        with _files.create(path, mime_type="application/json") as file:
            file.write(text.encode())

    def _path(self, *names: str) -> str:
        return _files.join(self._folder, *filter(None, names))

    def _new(self, name: str) -> str:
        """The path of a file of this run."""
        return self._path(self._run, name)

    def _names(self, folder: str) -> set[str]:
        """Returns the names of our files in the folder of a run; "": those in their places."""
        found = _files.match([self._path(folder, "*")])[0].metadata_list
        names = {re.split(r"[/\\]", each.path)[-1] for each in found}
        return {name for name in names if re.fullmatch(_WRITTEN, name)}
