"""Embeds a corpus: from files to Parquet, as a step for your own pipelines, and reads it back."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from pyarrow import parquet

from use_st5._imports import require
from use_st5.beam.model import ModelSource
from use_st5.beam.rows import REPORT, FileFormat, RowReader

if TYPE_CHECKING:
    from use_st5.beam.pipeline import CorpusFolder, EmbedTexts

_log = logging.getLogger(__name__)
# The message of this machine's runner when a process that it started is gone.
_LOST = "Channel closed prematurely"
_ATTEMPTS = 3


@dataclass(frozen=True)
class CorpusReport:
    """The counts of an embedded corpus, as in `embeddings.json` in its folder.

    Attributes:
        model: The model's name.
        model_hash: The model's `identity`.
        files: Files that were read.
        rows: Rows that have a vector.
        bad_rows: Rows that have no vector.
        truncated: Texts that are longer than the model reads.
        characters: Characters of the texts with a vector.
        prompt: The text that the model read before each text.
    """

    model: str
    model_hash: str
    files: int = 0
    rows: int = 0
    bad_rows: int = 0
    truncated: int = 0
    characters: int = 0
    prompt: str = ""


def embed_texts(
    model: str | os.PathLike[str] = "use_dan_en",
    *,
    batch_size: int | None = None,
    prompt: str | None = None,
    prompt_name: str | None = None,
) -> EmbedTexts:
    """Returns a transform of Apache Beam that turns pairs of id and text into vectors.

    One call of the model gets some thousand texts of a bundle and sorts them by length. Each worker
    process loads the model once, for all its threads. Elements that are no pair of texts are set
    aside.

    Args:
        model: The name of a bundled model, a folder that every worker has, or a URL that Beam's
            file systems read, such as `gs://bucket/my_model`.
        batch_size: The most texts in one call of the graph; None: the default of `encode`.
        prompt: The text that the model reads before each text; None: the one of `prompt_name`.
        prompt_name: The name of one of the model's prompts; None: its default prompt, if any.

    Returns:
        A `PTransform` from pairs `(id, text)` to a named tuple: `vectors`, a collection of
        `pyarrow.Table` with the columns `id`, `text` and `embedding`, and `bad`, a collection of
        `BadRow` with `id`, `reason` and `content`. The counters of the namespace "use_st5" are
        `rows`, `bad_rows`, `truncated` and `characters`.

    Raises:
        ImportError: Apache Beam is not installed.
        FileNotFoundError: There is no such model here.
        ValueError: The model has no such prompt.

    Examples:
        >>> with apache_beam.Pipeline() as pipeline:
        ...     pairs = pipeline | apache_beam.Create([("a", "How old are you?")])
        ...     embedded = pairs | embed_texts("use_dan_en")
        ...     rows = embedded.vectors | apache_beam.FlatMap(lambda table: table.to_pylist())
    """
    require("apache_beam", "beam")
    from use_st5.beam.pipeline import EmbedTexts

    source = ModelSource.of(os.fspath(model), prompt=prompt, prompt_name=prompt_name)
    return EmbedTexts(source, batch_size)


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
    prompt: str | None = None,
    prompt_name: str | None = None,
    overwrite: bool = False,
) -> CorpusReport:
    """Embeds the texts of many files with Apache Beam, each once, and waits for the end.

    Writes `vectors-*.parquet` with the columns `id`, `text` and `embedding`, `bad-*.jsonl` with the
    rows that have no vector, and last `embeddings.json`: a folder with this file is complete. Each
    row is written exactly once, even if a worker is killed.

    Args:
        pattern: Files by name, with `*`, `**` and `?`, on any file system that Beam has: lines of
            text (.txt), .jsonl, .parquet or .tfrecord of `tf.train.Example`.
        folder: The folder to write, on any of these file systems.
        model: As for `embed_texts`.
        runner: The name of Beam's runner.
        options: The runner's options, as words of a command line.
        text_field: The field, column or feature with the text, if the format has fields.
        id_field: The field with the id, a text or a whole number. None: `FILE:NUMBER`, the file's
            path below the pattern's fixed folders and the row's number from 1.
        file_format: The format of all files; None: each file's name says it.
        batch_size: As for `embed_texts`.
        prompt: As for `embed_texts`.
        prompt_name: As for `embed_texts`.
        overwrite: Whether older vectors are replaced when the new ones are complete.

    Raises:
        ImportError: Apache Beam, or a package that the runner needs, is not installed.
        FileNotFoundError: There are no such files, or no such model.
        FileExistsError: The folder holds vectors.
        ValueError: An option is unknown, or the model has no such prompt.
        RuntimeError: The runner gave up, or rows are missing.
    """
    parsed = parsed_options(runner, options)
    check_runner(runner)
    from use_st5.beam import pipeline as steps

    source = ModelSource.of(os.fspath(model), prompt=prompt, prompt_name=prompt_name)
    pattern, target = _anywhere(pattern), steps.CorpusFolder(_anywhere(os.fspath(folder)))
    steps.matched(pattern)  # Rather an error here than on a worker in some minutes.

    def build(pipeline: Any) -> None:
        read = pipeline | steps.ReadBlocks(pattern, RowReader(text_field, id_field, file_format))
        target.write(read, read.made | steps.EmbedBlocks(source, batch_size), source)

    with target.sole_writer():
        target.make_room(overwrite=overwrite)
        _run(parsed, build, target)
        return _finished(target, source)


def _finished(target: CorpusFolder, source: ModelSource) -> CorpusReport:
    """Puts the new files in their places, with the report."""
    counts = target.counted()
    report = CorpusReport(source.name, source.model_hash, **counts, prompt=source.prompt)
    target.finish(json.dumps(asdict(report), indent=2) + "\n")
    return report


def _anywhere(path: str) -> str:
    """Returns a path that means the same in a worker's folder."""
    return path if "://" in path else str(Path(path).absolute())


def _run(options: Any, build: Callable[[Any], None], target: CorpusFolder) -> None:
    """Runs the pipeline of `build`, and again if this machine's runner lost a process.

    Runners of many machines give the work of a lost worker to another one. This machine's runner
    ends with an error.
    """
    for attempts_left in reversed(range(_ATTEMPTS)):
        pipeline: Any = require("apache_beam", "beam").Pipeline(options=options)
        build(pipeline)
        try:
            state = pipeline.run().wait_until_finish()
        except RuntimeError as error:
            if not attempts_left or _LOST not in str(error):
                raise
            _log.warning("A worker process was lost (%s): starting again.", error)
            target.remove_leftovers()
            continue
        if state != "DONE":
            raise RuntimeError(f"Expected the runner to end with DONE, received {state}.")
        return


def parsed_options(runner: str, flags: Sequence[str]) -> Any:
    """Returns Beam's `PipelineOptions` for a runner.

    Beam itself ignores options that it does not know. They are refused here, because a job with a
    misspelt option may cost money.

    Args:
        runner: The name of a runner, such as "DirectRunner", or the full name of a class.
        flags: Words of a command line, such as `--project`, `my-project`.

    Raises:
        ImportError: Beam is not installed.
        ValueError: A word is no option, or no value of one.
    """
    options: Any = require("apache_beam.options.pipeline_options", "beam")
    pipeline_options = options.PipelineOptions(["--runner", runner, *flags])
    parser = options._BeamArgumentParser(allow_abbrev=False)
    for kind in {str(kind): kind for kind in options.PipelineOptions.__subclasses__()}.values():
        kind._add_argparse_args(parser)
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint):
            _, unknown = parser.parse_known_args([*flags])
    except SystemExit:
        raise ValueError(
            f"Expected options of Beam: {complaint.getvalue().strip().splitlines()[-1]}"
        ) from None
    if unknown:
        raise ValueError(
            f"Expected options that Beam knows, received {' '.join(unknown)}. Beam's page of "
            "pipeline options lists them: https://beam.apache.org/documentation/"
        )
    return pipeline_options


def check_runner(runner: str) -> None:
    """Checks that Beam has a runner.

    Raises:
        ImportError: Beam, or a package that the runner needs, is not installed.
        ValueError: There is no runner of this name.
    """
    runners: Any = require("apache_beam.runners.runner", "beam")
    try:
        runners.create_runner(runner)
    except (ImportError, AttributeError) as error:
        raise ImportError(
            f"Expected the name of a Beam runner, could not load {runner} ({error}). Check the "
            'name. DataflowRunner needs: pip install "apache-beam[gcp]"'
        ) from error


def read_vectors(folder: str | os.PathLike[str]) -> tuple[list[str], list[str], np.ndarray]:
    """Reads the vectors that `embed_corpus` wrote to a local folder.

    Args:
        folder: The folder. It holds `embeddings.json` if it is complete.

    Returns:
        Ids, texts, and vectors float32 `[rows, dimension]`; all three have the rows in the order of
        the files.

    Raises:
        FileNotFoundError: The folder holds no vectors, or not all of them.
        ValueError: The files are of several models.

    Examples:
        >>> ids, texts, vectors = read_vectors("vectors")
        >>> faiss_index.add(vectors)
    """
    place = Path(folder)
    if not (place / REPORT).is_file():
        raise FileNotFoundError(
            f"Expected {REPORT} in {place}, found none: the vectors are not complete. Embed the "
            "corpus again."
        )
    files = [parquet.ParquetFile(path) for path in sorted(place.glob("vectors-*-of-*.parquet"))]
    models = {file.schema_arrow.metadata[b"model_hash"] for file in files}
    if len(models) > 1:
        raise ValueError(f"{place}: expected vectors of one model, found those of {len(models)}.")
    ids: list[str] = []
    texts: list[str] = []
    vectors: np.ndarray | None = None
    total = sum(file.metadata.num_rows for file in files)
    for batch in (each for file in files for each in file.iter_batches()):
        numbers = batch.column("embedding").flatten().to_numpy().reshape(len(batch), -1)
        if vectors is None:
            vectors = np.empty((total, numbers.shape[1]), np.float32)
        vectors[len(ids) : len(ids) + len(batch)] = numbers
        ids += batch.column("id").to_pylist()
        texts += batch.column("text").to_pylist()
    for file in files:
        file.close()
    return ids, texts, np.empty((0, 0), np.float32) if vectors is None else vectors
