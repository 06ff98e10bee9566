"""The steps of a pipeline: files to blocks of rows, blocks to tables of vectors, tables to Parquet.

A block is an Arrow table of some thousand rows, so that Beam's cost for an element does not count
for each text. A row that has no vector is set aside alone, with its reason.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from use_st5._imports import require
from use_st5.beam.model import ModelSource
from use_st5.beam.rows import BadRow, Row, TextRow, as_text
from use_st5.encode.encoder import SentenceEncoder
from use_st5.encode.sentences import check_batch_size
from use_st5.io.lines import in_chunks

beam: Any = require("apache_beam", "beam")
_inference: Any = require("apache_beam.ml.inference.base", "beam")
_parquet: Any = require("apache_beam.io.parquetio", "beam")
files: Any = require("apache_beam.io.filesystems", "beam").FileSystems
_PLAIN: Any = require("apache_beam.io.filesystem", "beam").CompressionTypes.UNCOMPRESSED

_DoFn: Any = beam.DoFn
_PTransform: Any = beam.PTransform
_ModelHandler: Any = _inference.ModelHandler

_COUNTERS = "use_st5"
_BAD, _TALLY = "bad", "tally"
# One call of the encoder gets at most this much, sorts it by length and cuts it into batches.
_BLOCK_ROWS, _BLOCK_CHARACTERS = 4096, 4_000_000
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
        self._handler = EncoderHandler(source, batch_size)

    def expand(self, pairs: Any) -> Embedded:
        """Sets aside bad pairs, makes blocks of the others and embeds them."""
        checked = pairs | "check" >> beam.ParDo(_Check()).with_outputs(_BAD, main="good")
        blocks = checked.good | "gather" >> beam.BatchElements(
            min_batch_size=_BLOCK_CHARACTERS,
            max_batch_size=_BLOCK_CHARACTERS,
            element_size_fn=_size,
        )
        embedded = _embedded(blocks | "as table" >> beam.Map(_as_block), self._handler)
        bad = (checked[_BAD], embedded[_BAD]) | "all bad" >> beam.Flatten()
        return Embedded(embedded.vectors, bad)


def embed_files(
    start: Any, pattern: str, read: Callable[..., Iterable[Row]], handler: Any, prefix: str
) -> None:
    """Adds the steps that embed the files of a pattern.

    Args:
        start: The pipeline.
        pattern: The files.
        read: Reads the rows of an open file, as `read_rows`.
        handler: An `EncoderHandler`.
        prefix: A path with a "{}", in which "vectors", "bad" or "tally" stands.
    """
    found = (
        start
        | "pattern" >> beam.Create([pattern])
        | "match" >> beam.FlatMap(matched)
        | "spread files" >> beam.Reshuffle()
        | "read" >> beam.ParDo(_Read(read)).with_outputs(_BAD, _TALLY, main="blocks")
    )
    embedded = _embedded(found.blocks | "spread blocks" >> beam.Reshuffle(), handler)
    _ = embedded.vectors | "write vectors" >> _parquet.WriteToParquetBatched(
        prefix.format("vectors"),
        vector_schema(handler.source),
        codec="snappy",
        use_compliant_nested_type=True,
        file_name_suffix=".parquet",
    )
    _ = (
        (found[_BAD], embedded[_BAD])
        | "all bad rows" >> beam.Flatten()
        | "as json" >> beam.Map(BadRow.as_json)
        | "write bad rows"
        >> beam.io.WriteToText(prefix.format("bad"), ".jsonl", skip_if_empty=True)
    )
    _ = (
        (found[_TALLY], embedded[_TALLY])
        | "all tallies" >> beam.Flatten()
        | "sum" >> beam.CombineGlobally(_summed)
        | "tally as json" >> beam.Map(json.dumps)
        | "write tally"
        >> beam.io.WriteToText(prefix.format("tally"), num_shards=1, shard_name_template="")
    )


def _embedded(blocks: Any, handler: Any) -> Any:
    """The outputs of blocks by Beam's `RunInference`: vectors, bad rows and a tally."""
    return (
        blocks
        | "embed" >> _inference.RunInference(handler)
        | "split" >> beam.ParDo(_Split()).with_outputs(_BAD, _TALLY, main="vectors")
    )


class EncoderHandler(_ModelHandler):
    """Lets `RunInference` load the model once in a process, and embed blocks with it."""

    def __init__(self, source: ModelSource, batch_size: int | None) -> None:
        super().__init__(max_batch_size=1)  # A block is a batch.
        self.source = source
        self._options: dict[str, Any] = {"prompt": source.prompt}
        if batch_size is not None:
            check_batch_size(batch_size)
            self._options["batch_size"] = batch_size

    def load_model(self) -> SentenceEncoder:
        """Loads the model."""
        return self.source.load()

    def run_inference(
        self, batch: Sequence[pa.Table], model: SentenceEncoder, inference_args: Any = None
    ) -> Iterator[tuple[pa.Table, int]]:
        """Yields each block with its vectors, and the number of its texts that were cut."""
        for block in batch:
            texts = block["text"].to_pylist()
            vectors = model.encode(
                texts, on_truncation="ignore", show_progress=False, **self._options
            )
            cut = model.truncated([self.source.prompt + text for text in texts])
            starts = pa.array(np.arange(len(texts) + 1, dtype=np.int32) * vectors.shape[1])
            numbers = pa.array(np.ascontiguousarray(vectors, np.float32).ravel())
            columns = [*block.columns, pa.ListArray.from_arrays(starts, numbers)]
            yield pa.table(columns, schema=vector_schema(self.source)), len(cut)

    def get_num_bytes(self, batch: Sequence[pa.Table]) -> int:
        """The size of a batch, for Beam's metrics."""
        return sum(block.nbytes for block in batch)


class _Split(_DoFn):
    """Sets aside the rows whose vectors are not finite, and counts the rows."""

    def process(self, embedded: tuple[pa.Table, int]) -> Iterator[Any]:
        table, cut = embedded
        vectors = table["embedding"].combine_chunks().flatten().to_numpy()
        finite = np.isfinite(vectors.reshape(len(table), -1)).all(axis=1)
        if not finite.all():
            for row in table.filter(~finite).select(["id", "text"]).to_pylist():
                reason = "the model gives numbers that are not finite"
                yield beam.pvalue.TaggedOutput(_BAD, BadRow.of(row["id"], reason, row["text"]))
            table = table.filter(finite)
        if table.num_rows:
            yield table
        yield _tally(
            rows=table.num_rows,
            bad_rows=int((~finite).sum()),
            truncated=cut,
            characters=sum(map(len, table["text"].to_pylist())),
        )


class _Check(_DoFn):
    """Passes pairs of texts on, and sets everything else aside."""

    def process(self, pair: Any) -> Iterator[Any]:
        try:
            name, text = pair
            row = TextRow(as_text(name, "id"), as_text(text, "text"))
            "".join(row).encode()
        except (TypeError, ValueError) as error:
            beam.metrics.Metrics.counter(_COUNTERS, "bad_rows").inc()
            name = str(pair[0]) if isinstance(pair, tuple) and pair else ""
            reason = f"expected a pair of id and text ({error})"
            yield beam.pvalue.TaggedOutput(_BAD, BadRow.of(name, reason, pair))
        else:
            yield row


class _Read(_DoFn):
    """Turns a file, by its path and the name that its rows' ids begin with, into blocks."""

    def __init__(self, read: Callable[..., Iterable[Row]]) -> None:
        self._read = read

    def process(self, file: tuple[str, str]) -> Iterator[Any]:
        path, name = file
        with files.open(path, compression_type=_PLAIN) as opened:
            rows = self._read(opened, name)
            for chunk in in_chunks(
                rows, rows=_BLOCK_ROWS, characters=_BLOCK_CHARACTERS, length=_characters
            ):
                good_rows = [row for row in chunk if isinstance(row, TextRow)]
                bad_rows = [row for row in chunk if isinstance(row, BadRow)]
                yield from (beam.pvalue.TaggedOutput(_BAD, row) for row in bad_rows)
                yield _tally(read=len(chunk), bad_rows=len(bad_rows))
                if good_rows:
                    yield _as_block(good_rows)
        yield _tally(files=1)


def matched(pattern: str) -> list[tuple[str, str]]:
    """Returns the files of a pattern: path, and the part after the pattern's fixed folders.

    Raises:
        FileNotFoundError: There are none.
    """
    paths = [each.path for each in files.match([pattern])[0].metadata_list]
    if not paths:
        raise FileNotFoundError(f"Expected files, found none for {pattern}.")
    root = posixpath.dirname(re.split(r"[*?\[{]", pattern, maxsplit=1)[0])
    return [(path, path.removeprefix(root).lstrip("/")) for path in sorted(paths)]


def _summed(tallies: Iterable[dict[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for tally in tallies:
        total.update(tally)
    return dict(total)


def _tally(**numbers: int) -> Any:
    """Counts in the runner's monitor, and returns an output that counts exactly once."""
    for name, number in numbers.items():
        beam.metrics.Metrics.counter(_COUNTERS, name).inc(number)
    return beam.pvalue.TaggedOutput(_TALLY, numbers)


def _as_block(rows: Sequence[TextRow]) -> pa.Table:
    return pa.table({"id": [row.id for row in rows], "text": [row.text for row in rows]})


def _characters(row: TextRow | BadRow) -> int:
    return len(row.text if isinstance(row, TextRow) else row.content)


def _size(row: TextRow) -> int:
    return _ROW + len(row.text)
