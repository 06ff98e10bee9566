"""The steps of a pipeline: files to blocks of rows, blocks to tables of vectors, tables to Parquet.

A block is an Arrow table of some thousand rows, so that Beam's cost for an element does not count
for each text. A row that has no vector is set aside alone, with its reason.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

import use_st5
from use_st5._imports import require
from use_st5.beam.rows import Row, as_text, bad_row
from use_st5.encode.encoder import SentenceEncoder
from use_st5.encode.options import SentenceTransformersNames, chosen_prompt
from use_st5.hub.model_manifest import ModelManifest, describe_files
from use_st5.hub.model_names import model_folder
from use_st5.io.lines import in_chunks

beam: Any = require("apache_beam", "beam")
_inference: Any = require("apache_beam.ml.inference.base", "beam")
_parquet: Any = require("apache_beam.io.parquetio", "beam")
files: Any = require("apache_beam.io.filesystems", "beam").FileSystems
_PLAIN: Any = require("apache_beam.io.filesystem", "beam").CompressionTypes.UNCOMPRESSED

_DoFn: Any = beam.DoFn
_PTransform: Any = beam.PTransform
_ModelHandler: Any = _inference.ModelHandler

COUNTERS = "use_st5"
_BAD = "bad"
# One call of the encoder gets at most this much, sorts it by length and cuts it into batches.
_BLOCK_ROWS, _BLOCK_CHARACTERS = 4096, 4_000_000
# The size of a row in addition to its characters, in characters; above all, its vector.
_ROW = 1000


class Embedded(NamedTuple):
    """The result of embedding rows.

    Attributes:
        vectors: A collection of `pyarrow.Table` with the columns `id`, `text` and `embedding`, some
            thousand rows each.
        bad: A collection of dictionaries: `id`, `reason` and `content` of a row without a vector.
    """

    vectors: Any
    bad: Any


class EncoderHandler(_ModelHandler):
    """Lets `RunInference` load a model once in a process, and embed blocks with it.

    The arguments are those of `embed_texts`. The model's files are read without TensorFlow.

    Attributes:
        name: The model's name.
        model_hash: The same as `SentenceEncoder.identity`.
        prompt: The text that is put before each text.
        schema: The columns `id`, `text` and `embedding`, with the model as metadata.
    """

    def __init__(
        self,
        model: str,
        *,
        batch_size: int | None = None,
        prompt: str | None = None,
        prompt_name: str | None = None,
    ) -> None:
        super().__init__(max_batch_size=1)  # A block is a batch.
        folder = model_folder(model)
        manifest = ModelManifest.read(folder)
        prompts = {**SentenceTransformersNames.prompts, **(manifest.prompts if manifest else {})}
        default = manifest.default_prompt_name if manifest else None
        self._model = model
        self.name = manifest.name if manifest else folder.name
        self.model_hash = manifest.model_hash if manifest else describe_files(folder)[1]
        self.prompt = chosen_prompt(prompt, prompt_name, prompts, default)
        self._options: dict[str, Any] = {"prompt": self.prompt}
        if batch_size is not None:
            self._options["batch_size"] = batch_size
        facts = {"model": self.name, "model_hash": self.model_hash}
        if self.prompt:
            facts["prompt"] = self.prompt
        names = [("id", pa.string()), ("text", pa.string()), ("embedding", pa.list_(pa.float32()))]
        self.schema = pa.schema(names, metadata=facts)

    def load_model(self) -> SentenceEncoder:
        """Loads the model; a ValueError if this machine has another model in that place."""
        encoder = use_st5.load(self._model)
        if encoder.identity != self.model_hash:
            expected = f"expected the hash {self.model_hash[:12]}, as where the pipeline started"
            raise ValueError(f"{self._model}: {expected}, found {encoder.identity[:12]}.")
        return encoder

    def run_inference(
        self, batch: Sequence[pa.Table], model: SentenceEncoder, inference_args: Any = None
    ) -> Iterator[pa.Table]:
        """Yields each block with its vectors."""
        for block in batch:
            texts = block["text"].to_pylist()
            vectors = model.encode(
                texts, on_truncation="ignore", show_progress=False, **self._options
            )
            _count("rows", len(texts))
            _count("truncated", len(model.truncated([self.prompt + text for text in texts])))
            _count("characters", sum(map(len, texts)))
            starts = pa.array(np.arange(len(texts) + 1, dtype=np.int32) * vectors.shape[1])
            numbers = pa.array(np.ascontiguousarray(vectors, np.float32).ravel())
            columns = [*block.columns, pa.ListArray.from_arrays(starts, numbers)]
            yield pa.table(columns, schema=self.schema)


class EmbedTexts(_PTransform):
    """Turns pairs of id and text into `Embedded`; see `embed_texts`."""

    def __init__(self, handler: EncoderHandler) -> None:
        super().__init__()
        self._handler = handler

    def expand(self, pairs: Any) -> Embedded:
        """Sets aside bad pairs, makes blocks of the others and embeds them."""
        checked = pairs | "check" >> beam.ParDo(_Check()).with_outputs(_BAD, main="good")
        blocks = checked.good | "gather" >> beam.BatchElements(
            min_batch_size=_BLOCK_CHARACTERS,
            max_batch_size=_BLOCK_CHARACTERS,
            element_size_fn=lambda row: _ROW + len(row[1]),
        )
        tables = blocks | "as table" >> beam.Map(_as_block)
        return Embedded(tables | _inference.RunInference(self._handler), checked[_BAD])


def embed_files(
    start: Any,
    paths: Sequence[tuple[str, str]],
    read: Callable[..., Iterable[Row]],
    handler: EncoderHandler,
    prefix: str,
) -> None:
    """Adds the steps that embed files, given by the path and the name that their ids begin with.

    `read` reads the rows of an open file, as `read_rows`. "vectors" or "bad" stands in the "{}" of
    `prefix`.
    """
    rows = (
        start
        | "files" >> beam.Create(paths)
        | "spread files" >> beam.Reshuffle()
        | "read" >> beam.ParDo(_Read(read)).with_outputs(_BAD, main="blocks")
    )
    _ = (
        rows.blocks
        | "spread blocks" >> beam.Reshuffle()
        | "embed" >> _inference.RunInference(handler)
        | "write vectors"
        >> _parquet.WriteToParquetBatched(
            prefix.format("vectors"),
            handler.schema,
            codec="snappy",
            use_compliant_nested_type=True,
            file_name_suffix=".parquet",
        )
    )
    _ = (
        rows[_BAD]
        | "as json" >> beam.Map(json.dumps, ensure_ascii=False)
        | "write bad rows"
        >> beam.io.WriteToText(prefix.format("bad"), ".jsonl", skip_if_empty=True)
    )


class _Check(_DoFn):
    """Passes pairs of texts on, and sets everything else aside."""

    def process(self, pair: Any) -> Iterator[Any]:
        try:
            name, text = pair
            row = as_text(name, "id"), as_text(text, "text")
            "".join(row).encode()
        except (TypeError, ValueError) as error:
            _count("bad_rows", 1)
            name = str(pair[0]) if isinstance(pair, tuple) and pair else ""
            reason = f"expected a pair of id and text ({error})"
            yield beam.pvalue.TaggedOutput(_BAD, bad_row(name, reason, pair))
        else:
            yield row


class _Read(_DoFn):
    """Turns a file, by its path and the name that its rows' ids begin with, into blocks."""

    def __init__(self, read: Callable[..., Iterable[Row]]) -> None:
        self._read = read

    def process(self, file: tuple[str, str]) -> Iterator[Any]:
        path, name = file
        with files.open(path, compression_type=_PLAIN) as opened:
            for chunk in in_chunks(
                self._read(opened, name),
                rows=_BLOCK_ROWS,
                characters=_BLOCK_CHARACTERS,
                length=lambda row: len(row["content"] if isinstance(row, dict) else row[1]),
            ):
                bad_rows = [row for row in chunk if isinstance(row, dict)]
                _count("bad_rows", len(bad_rows))
                yield from (beam.pvalue.TaggedOutput(_BAD, row) for row in bad_rows)
                if good_rows := [row for row in chunk if not isinstance(row, dict)]:
                    yield _as_block(good_rows)


def matched(pattern: str) -> list[tuple[str, str]]:
    """The files of a pattern: path, and the part after the pattern's fixed folders."""
    paths = [file.path for file in files.match([pattern])[0].metadata_list]
    if not paths:
        raise FileNotFoundError(f"Expected files, found none for {pattern}.")
    root = posixpath.dirname(re.split(r"[*?\[{]", pattern, maxsplit=1)[0])
    return [(path, path.removeprefix(root).lstrip("/")) for path in sorted(paths)]


def _count(name: str, number: int) -> None:
    beam.metrics.Metrics.counter(COUNTERS, name).inc(number)


def _as_block(rows: Sequence[tuple[str, str]]) -> pa.Table:
    ids, texts = zip(*rows, strict=True)
    return pa.table({"id": ids, "text": texts})
