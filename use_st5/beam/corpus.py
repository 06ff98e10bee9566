"""Embeds a corpus: from files to Parquet, as a step for your own pipelines, and reads it back."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import secrets
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from pyarrow import parquet

from use_st5._imports import require
from use_st5.beam.model import ModelSource
from use_st5.beam.rows import FileFormat, read_rows
from use_st5.io.files import atomic_path, sole_writer

if TYPE_CHECKING:
    from use_st5.beam.pipeline import EmbedTexts

# The report in the folder of an embedded corpus.
REPORT = "embeddings.json"


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

    Writes `vectors-RUN-*.parquet` with the columns `id`, `text` and `embedding`,
    `bad-RUN-*.jsonl` with the rows that have no vector, and last `embeddings.json`, which names the
    run: a folder with this file is complete. Each row is written exactly once.

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
    pipeline = require("apache_beam", "beam").Pipeline(options=parsed_options(runner, options))
    from use_st5.beam import pipeline as steps

    source = ModelSource.of(os.fspath(model), prompt=prompt, prompt_name=prompt_name)
    handler = steps.EncoderHandler(source, batch_size)
    pattern, folder = _anywhere(pattern), _anywhere(os.fspath(folder)).rstrip("/") or "/"
    steps.matched(pattern)  # Rather an error here than on a worker in some minutes.
    run = secrets.token_hex(6)
    report_path = steps.files.join(folder, REPORT)
    is_local = "://" not in folder
    with sole_writer(Path(folder), inside=True) if is_local else contextlib.nullcontext():
        if not overwrite and steps.files.exists(report_path):
            raise FileExistsError(
                f"Expected a folder without vectors, found {report_path}. Choose another folder, "
                "or give overwrite=True (--overwrite)."
            )
        read = functools.partial(
            read_rows, text_field=text_field, id_field=id_field, file_format=file_format
        )
        prefix = steps.files.join(folder, f"{{}}-{run}")
        steps.embed_files(pipeline, pattern, read, handler, prefix)
        state = pipeline.run().wait_until_finish()
        if state != "DONE":
            raise RuntimeError(f"Expected the runner to end with DONE, received {state}.")
        counts = _checked_counts(folder, run)
        report = CorpusReport(source.name, source.model_hash, **counts, prompt=source.prompt)
        text = json.dumps({**asdict(report), "run": run}, indent=2) + "\n"
        if is_local:
            with atomic_path(report_path) as temporary:
                temporary.write_text(text, encoding="utf-8")
        else:
            with steps.files.create(report_path, mime_type="application/json") as file:
                file.write(text.encode())
        _remove_others(folder, run, overwrite=overwrite)
    return report


def _remove_others(folder: str, run: str, *, overwrite: bool) -> None:
    """Removes the files of all other runs; those without a run in their names if `overwrite`."""
    from use_st5.beam.pipeline import files

    older = "?" if overwrite else ""
    name = rf"(vectors|bad)-(?!{run})([0-9a-f]{{12}}-){older}\d+-of-\d+\.(parquet|jsonl)"
    files.delete(_matching(folder, rf"{name}|tally-[0-9a-f]{{12}}"))
    if "://" not in folder:
        for path in Path(folder).glob("beam-temp-*"):
            if re.fullmatch(r"beam-temp-(vectors|bad|tally)-[0-9a-f]{12}-.*", path.name):
                shutil.rmtree(path, ignore_errors=True)


def _checked_counts(folder: str, run: str) -> dict[str, int]:
    """The counts of a run by name; a RuntimeError if rows are missing."""
    from use_st5.beam.pipeline import files

    with files.open(files.join(folder, f"tally-{run}")) as file:
        counts = json.loads(file.read())
    rows = 0
    for path in _matching(folder, rf"vectors-{run}-.*\.parquet"):
        with files.open(path) as file:
            rows += parquet.read_metadata(file).num_rows
    read, bad = counts.pop("read", 0), counts.get("bad_rows", 0)
    if rows + bad != read:
        raise RuntimeError(
            f"Expected {read - bad:,} rows in {folder}, as many as were read, found {rows:,}. "
            "Another process changed it; embed the corpus again."
        )
    return counts


def _matching(folder: str, name: str) -> list[str]:
    """The paths of the files in a folder whose names match a regular expression."""
    from use_st5.beam.pipeline import files

    paths = [each.path for each in files.match([files.join(folder, "*")])[0].metadata_list]
    return [path for path in paths if re.fullmatch(name, re.split(r"[/\\]", path)[-1])]


def _anywhere(path: str) -> str:
    """Returns a path that means the same in a worker's folder."""
    return path if "://" in path else str(Path(path).absolute())


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

    class Parser(options._BeamArgumentParser):
        def error(self, message: str) -> NoReturn:
            raise ValueError(f"Expected options of Beam: {message}")

    parser = Parser(allow_abbrev=False)
    for group in {str(group): group for group in options.PipelineOptions.__subclasses__()}.values():
        group._add_argparse_args(parser)
    _, unknown = parser.parse_known_args([*flags])
    if unknown:
        raise ValueError(
            f"Expected options that Beam knows, received {' '.join(unknown)}. Beam's page of "
            "pipeline options lists them: https://beam.apache.org/documentation/"
        )
    return options.PipelineOptions(["--runner", runner, *flags])


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
    run = json.loads((place / REPORT).read_bytes()).get("run", "")
    if not re.fullmatch(r"([0-9a-f]{12})?", run):
        raise ValueError(f"{place / REPORT}: expected the name of a run, found {run!r:.80}.")
    pattern = f"vectors-{run}-*.parquet" if run else "vectors-*-of-*.parquet"
    files = [parquet.ParquetFile(path) for path in sorted(place.glob(pattern))]
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
