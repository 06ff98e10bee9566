"""Embeds a corpus: from files to Parquet, as a step for your own pipelines, and reads it back."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from use_st5._imports import require
from use_st5.beam.rows import FileFormat, read_rows
from use_st5.io.files import sole_writer, write_json

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
        rows: Rows that have a vector, counted in the files of vectors.
        bad_rows: Rows that have no vector; this and the next two are counters of the runner, and
            some runners count repeated work twice.
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
        model: The name of a bundled model, a folder that every worker has, or a URL such as
            `gs://bucket/my_model`.
        batch_size: The most texts in one call of the graph; None: the default of `encode`.
        prompt: The text that the model reads before each text; None: the one of `prompt_name`.
        prompt_name: The name of one of the model's prompts; None: its default prompt, if any.

    Returns:
        A `PTransform` from pairs `(id, text)` to a named tuple: `vectors`, a collection of
        `pyarrow.Table` with the columns `id`, `text` and `embedding`, and `bad`, a collection of
        dictionaries with `id`, `reason` and `content`. The counters of the namespace "use_st5" are
        `rows`, `bad_rows`, `truncated` and `characters`.

    Examples:
        >>> with apache_beam.Pipeline() as pipeline:
        ...     pairs = pipeline | apache_beam.Create([("a", "How old are you?")])
        ...     embedded = pairs | embed_texts("use_dan_en")
        ...     rows = embedded.vectors | apache_beam.FlatMap(lambda table: table.to_pylist())
    """
    require("apache_beam", "beam")
    from use_st5.beam.pipeline import EmbedTexts, EncoderHandler

    options: dict[str, Any] = {"prompt": prompt, "prompt_name": prompt_name}
    return EmbedTexts(EncoderHandler(os.fspath(model), batch_size=batch_size, **options))


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
    run: a folder with this file is complete.

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
    """
    beam = require("apache_beam", "beam")
    pipeline = beam.Pipeline(options=parsed_options(runner, options))
    from use_st5.beam import pipeline as steps

    prompts: dict[str, Any] = {"prompt": prompt, "prompt_name": prompt_name}
    handler = steps.EncoderHandler(os.fspath(model), batch_size=batch_size, **prompts)
    # A local path must mean the same in a worker's folder.
    pattern, folder = (
        path if "://" in path else str(Path(path).absolute())
        for path in (pattern, os.fspath(folder))
    )
    paths, run = steps.matched(pattern), secrets.token_hex(6)
    report_path = steps.files.join(folder, REPORT)
    is_local = "://" not in folder
    with sole_writer(Path(folder), inside=True) if is_local else contextlib.nullcontext():
        if not overwrite and steps.files.exists(report_path):
            raise FileExistsError(f"{report_path} exists; give --overwrite or another folder.")
        read = functools.partial(
            read_rows, text_field=text_field, id_field=id_field, file_format=file_format
        )
        steps.embed_files(pipeline, paths, read, handler, steps.files.join(folder, f"{{}}-{run}"))
        result = pipeline.run()
        state = result.wait_until_finish()
        if state != "DONE":
            raise RuntimeError(f"Expected the runner to end with DONE, received {state}.")
        counts = dict.fromkeys(("bad_rows", "truncated", "characters"), 0)
        own = beam.metrics.MetricsFilter().with_namespace(steps.COUNTERS)
        for counter in result.metrics().query(own)["counters"]:
            if counter.key.metric.name in counts:
                counts[counter.key.metric.name] += counter.result
        rows = 0
        for path in _matching(folder, rf"vectors-{run}-.*\.parquet"):
            with steps.files.open(path) as file:
                rows += parquet.read_metadata(file).num_rows
        report = CorpusReport(
            handler.name, handler.model_hash, len(paths), rows, **counts, prompt=handler.prompt
        )
        content = {**asdict(report), "run": run}
        if is_local:
            write_json(Path(report_path), content)
        else:
            with steps.files.create(report_path, mime_type="application/json") as file:
                file.write(json.dumps(content).encode())
        older = rf"(vectors|bad)-(?!{run})[0-9a-f]{{12}}-\d+-of-\d+\.(parquet|jsonl)"
        steps.files.delete(_matching(folder, older))
    return report


def _matching(folder: str, name: str) -> list[str]:
    """The paths of the files in a folder whose names match a regular expression."""
    from use_st5.beam.pipeline import files

    paths = [file.path for file in files.match([files.join(folder, "*")])[0].metadata_list]
    return [path for path in paths if re.fullmatch(name, re.split(r"[/\\]", path)[-1])]


def parsed_options(runner: str, flags: Sequence[str]) -> Any:
    """Beam's `PipelineOptions` of a command line; Beam itself only warns of a misspelt option."""
    options_class: Any = require("apache_beam.options.pipeline_options", "beam").PipelineOptions
    options = options_class(["--runner", runner, *flags])
    known = options.get_all_options()
    unknown = options.get_all_options(retain_unknown_options=True).keys() - known.keys()
    if unknown:
        raise ValueError(f"Expected options that Beam knows, received {', '.join(unknown)}.")
    return options


def read_vectors(folder: str | os.PathLike[str]) -> tuple[list[str], list[str], np.ndarray]:
    """Reads the vectors that `embed_corpus` wrote to a local folder.

    Args:
        folder: The folder. It holds `embeddings.json` if it is complete.

    Returns:
        Ids, texts, and vectors float32 `[rows, dimension]`; all three have the rows in the order of
        the files.

    Examples:
        >>> ids, texts, vectors = read_vectors("vectors")
        >>> faiss_index.add(vectors)
    """
    place = Path(folder)
    if not (place / REPORT).is_file():
        raise FileNotFoundError(f"{place}: expected complete vectors, found no {REPORT}.")
    run = json.loads((place / REPORT).read_bytes())["run"]
    if not re.fullmatch(r"[0-9a-f]{12}", run):
        raise ValueError(f"{place / REPORT}: expected the name of a run, found {run!r:.80}.")
    paths = sorted(place.glob(f"vectors-{run}-*.parquet"))
    if not paths:
        return [], [], np.empty((0, 0), np.float32)
    table = pa.concat_tables(parquet.read_table(path) for path in paths)
    numbers = [chunk.flatten().to_numpy() for chunk in table["embedding"].chunks]
    vectors = np.concatenate(numbers).reshape(len(table), -1 if len(table) else 0)
    return table["id"].to_pylist(), table["text"].to_pylist(), vectors
