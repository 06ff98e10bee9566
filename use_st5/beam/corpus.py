"""A corpus to vectors: the whole way from files to Parquet, and its step for own pipelines."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from use_st5._imports import require
from use_st5.beam.model import ModelSource
from use_st5.beam.rows import FileFormat, RowReader
from use_st5.beam.runner_options import check_runner, parsed_options

if TYPE_CHECKING:
    from use_st5.beam.output import CorpusFolder
    from use_st5.beam.transforms import EmbedTexts

_log = logging.getLogger(__name__)
# What this machine's runner says when a process that it started is gone.
_LOST = "Channel closed prematurely"
_ATTEMPTS = 3


@dataclass(frozen=True)
class CorpusReport:
    """What was embedded; `embeddings.json` beside the vectors says the same.

    Attributes:
        model: The model's name.
        model_hash: Its `identity`.
        files: Files that were read.
        rows: Rows that have a vector.
        bad_rows: Rows that have none.
        truncated: Texts that are longer than the model reads.
        characters: Of the texts with a vector.
    """

    model: str
    model_hash: str
    files: int = 0
    rows: int = 0
    bad_rows: int = 0
    truncated: int = 0
    characters: int = 0


def embed_texts(
    model: str | os.PathLike[str] = "use_dan_en", *, batch_size: int | None = None
) -> EmbedTexts:
    """A transform of Apache Beam that turns pairs of id and text into vectors.

    Some thousand texts of a bundle make one call of the model, sorted by length; the model is
    loaded once in a worker process, for all its threads. What is no pair of texts is set aside.

    Args:
        model: The name of a bundled model, a folder that every worker has, or a URL that Beam's
            file systems read, such as `gs://bucket/my_model`.
        batch_size: Texts in one call of the graph at most; None: the model's own.

    Returns:
        A `PTransform` from pairs `(id, text)` to a named tuple: `vectors`, a collection of
        `pyarrow.Table` with the columns `id`, `text` and `embedding`, and `bad`, a collection of
        `BadRow` with `id`, `reason` and `content`. The counters of the namespace "use_st5" are
        `rows`, `bad_rows`, `truncated` and `characters`.

    Raises:
        ImportError: Apache Beam is not installed.
        FileNotFoundError: There is no such model here.

    Example:
        >>> with apache_beam.Pipeline() as pipeline:
        ...     pairs = pipeline | apache_beam.Create([("a", "How old are you?")])
        ...     embedded = pairs | embed_texts("use_dan_en")
        ...     rows = embedded.vectors | apache_beam.FlatMap(lambda table: table.to_pylist())
    """
    require("apache_beam", "beam")
    from use_st5.beam.transforms import EmbedTexts

    return EmbedTexts(ModelSource.of(os.fspath(model)), batch_size)


def embed_corpus(
    pattern: str,
    folder: str | os.PathLike[str],
    *,
    model: str | os.PathLike[str] = "use_dan_en",
    runner: str = "DirectRunner",
    options: Sequence[str] = (),
    text_field: str = "text",
    id_field: str | None = None,
    file_format: FileFormat | None = None,
    batch_size: int | None = None,
    overwrite: bool = False,
) -> CorpusReport:
    """Embeds the texts of many files with Apache Beam, each once, and waits for the end.

    Writes `vectors-*.parquet` with the columns `id`, `text` and `embedding`, `bad-*.jsonl` with the
    rows that have no vector, and last `embeddings.json`: a folder that has it is whole. What a
    killed worker had written counts for nothing, so that every row is there once.

    Args:
        pattern: Files by name, with `*`, `**` and `?`, on any file system that Beam has: lines of
            text (.txt), .jsonl, .parquet or .tfrecord of `tf.train.Example`.
        folder: Where to write, on any of these file systems.
        model: As for `embed_texts`.
        runner: The name of Beam's runner.
        options: The runner's options, as words of a command line.
        text_field: The field, column or feature that is the text, where there are some.
        id_field: The one that is the id, text or a whole number. None: `FILE:NUMBER`, the file's
            path below the pattern's fixed folders and the row's number from 1.
        file_format: Of all files; None: as the name of each says.
        batch_size: As for `embed_texts`.
        overwrite: Whether vectors that are there already are replaced, when the new ones are whole.

    Raises:
        ImportError: Apache Beam, or what the runner needs, is not installed.
        FileNotFoundError: There are no such files, or no such model.
        FileExistsError: The folder holds vectors.
        ValueError: An option is unknown.
        RuntimeError: The runner gave up, or not as many rows are there as were embedded.
    """
    parsed = parsed_options(runner, options)
    check_runner(runner)
    from use_st5.beam import output, transforms

    source = ModelSource.of(os.fspath(model))
    pattern, place = _anywhere(pattern), _anywhere(os.fspath(folder))
    transforms.matched(pattern)  # Rather an error here than on a worker in some minutes.
    reader = RowReader(text_field, id_field, file_format)
    target = output.CorpusFolder(place)

    def build(pipeline: Any) -> None:
        read = pipeline | transforms.ReadBlocks(pattern, reader)
        target.write(read, read.made | transforms.EmbedBlocks(source, batch_size), source)

    with target.sole_writer():
        target.make_room(overwrite=overwrite)
        _run(parsed, build, target)
        report = CorpusReport(source.name, source.model_hash, **target.counted())
        target.finish(json.dumps(asdict(report), indent=2) + "\n")
    return report


def _anywhere(path: str) -> str:
    """A path that means the same in a worker's folder."""
    return path if "://" in path else str(Path(path).absolute())


def _run(options: Any, build: Callable[[Any], None], target: CorpusFolder) -> None:
    """Runs what `build` adds to a pipeline, and anew where this machine's runner lost a process.

    Runners of many machines give the work of a lost worker to another; this machine's ends.
    """
    for left in reversed(range(_ATTEMPTS)):
        pipeline: Any = require("apache_beam", "beam").Pipeline(options=options)
        build(pipeline)
        try:
            state = pipeline.run().wait_until_finish()
        except RuntimeError as error:
            if not left or _LOST not in str(error):
                raise
            _log.warning("A worker process was lost (%s): starting the corpus anew.", error)
            target.remove_leftovers()
            continue
        if state != "DONE":
            raise RuntimeError(f"Expected the runner to end with DONE, received {state}.")
        return
