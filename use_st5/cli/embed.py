"""`use-st5 embed`: texts to vectors."""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from use_st5._files import sole_writer
from use_st5._progress import progress_lines
from use_st5._remote_files import carry, place_for, remote_path
from use_st5._streams import in_chunks
from use_st5.cli.destination import sole_file
from use_st5.cli.embed_corpus import (
    Corpus,
    IdFieldOption,
    InputFormatOption,
    RunnerOption,
    RunnerOptions,
    TextFieldOption,
)
from use_st5.cli.embedding_job import EmbeddingJob, Format, JobDescription, to_bytes
from use_st5.cli.lines import STDIN, open_input, open_seekable, read_lines, survey
from use_st5.cli.models import (
    DEFAULT_MODEL,
    ModelOption,
    encode_counting,
    load_encoder,
    say_truncated,
)
from use_st5.cli.output import manual, say, waiting

if TYPE_CHECKING:
    from use_st5.encoder import SentenceEncoder

# A chunk is what one call of the encoder gets and what an interruption can lose: whichever of the
# two is reached first.
_CHUNK_ROWS = 4096
_CHUNK_CHARACTERS = 4_000_000
# What goes to standard output comes sooner in smaller pieces.
_STREAMED_ROWS = 256

HELP = manual(
    r"""Turn texts, one a line, into vectors.

    Row i of the result belongs to line i of the input; an empty line is an empty text and has a row
    too. Texts are UTF-8.

    With [bold]-o FILE[/bold] the vectors go to a NumPy array (.npy: float32, \[lines, dimension])
    or to JSON lines (.jsonl: an object with "text" and "embedding" a line). FILE appears when it
    is whole. Unfinished work waits in FILE.partial: after an interruption the same command
    continues where the last one stopped, also when the texts come through a pipe.

    INPUT and FILE may lie on gs:// and every other file system of TensorFlow; the unfinished work
    is then in the cache of this machine.

    Without -o JSON lines go to standard output as they are ready.

    With [bold]--runner[/bold] Apache Beam embeds many files (extra beam): INPUT is a pattern in
    quotes, of text (.txt), .jsonl, .parquet or .tfrecord files, and -o a folder for
    vectors-*.parquet with the columns id, text and embedding. An id is FILE:NUMBER, or what --id
    names. Rows that have no vector go to bad-*.jsonl with the reason; embeddings.json, written
    last, counts all. After -- come the runner's own options.

    A model may read no more than so many tokens of a text (see use-st5 info): the last line on
    standard error then says how many texts were cut.""",
    "use-st5 embed sentences.txt -o vectors.npy",
    "zcat corpus.gz | use-st5 embed - -o vectors.npy --batch-size 256",
    'echo "How old are you?" | use-st5 embed - | jq .embedding',
    "use-st5 embed sentences.txt -o vectors.jsonl --model path/to/my_model",
    "use-st5 embed 'corpus/*.jsonl' -o vectors --runner DirectRunner --text body --id key",
)


class FormatOption(StrEnum):
    """The formats that `--format` takes."""

    NPY = "npy"
    JSONL = "jsonl"


def embed(
    source: Annotated[
        str, typer.Argument(metavar="INPUT", help="A text file, or - for standard input.")
    ],
    runner_options: RunnerOptions = None,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", help="The file to write. Default: JSON lines to stdout."),
    ] = None,
    model: ModelOption = DEFAULT_MODEL,
    form: Annotated[
        FormatOption | None,
        typer.Option("--format", help="Default: by the suffix of the output."),
    ] = None,
    batch_size: Annotated[
        int | None,
        typer.Option(min=1, help="Texts in one call of the model. Default: the model's own."),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the output if it exists.")
    ] = False,
    runner: RunnerOption = None,
    text_field: TextFieldOption = None,
    id_field: IdFieldOption = None,
    input_format: InputFormatOption = None,
) -> None:
    """Turns the lines of a text into vectors."""
    corpus = Corpus(source, text_field, id_field, input_format, tuple(runner_options or ()))
    if runner is not None:
        corpus.embed(runner, output, form, model, batch_size=batch_size, overwrite=overwrite)
        return
    corpus.refuse_without_runner()
    options = {} if batch_size is None else {"batch_size": batch_size}
    if output is None or output == STDIN:
        _to_standard_output(source, model, form or FormatOption.JSONL, options)
        return
    _to_named_file(source, Path(output), model, form, options, overwrite=overwrite)


def _to_named_file(
    source: str,
    output: Path,
    model: str,
    form: FormatOption | None,
    options: dict[str, Any],
    *,
    overwrite: bool,
) -> None:
    layout = form.value if form else _format_by_suffix(output)
    remote = remote_path(output)
    place = place_for(remote) if remote else output.absolute()
    if remote:
        place.parent.mkdir(parents=True, exist_ok=True)
    elif not place.parent.is_dir():
        raise FileNotFoundError(f"expected a folder to write to, found no {output.parent}")
    with (
        sole_file(output, overwrite=overwrite, elsewhere=True),
        sole_writer(place),
        open_seekable(source, beside=place) as stream,
    ):
        embed_to_file(stream, source, place if remote else output, model, layout, options)
        if remote:
            with waiting(f"carrying it to {remote}"):
                carry(place, remote)
            place.unlink()
            say(f"written: {remote}")


def _format_by_suffix(output: Path) -> Format:
    suffix = output.suffix.removeprefix(".")
    if suffix in list(FormatOption):
        return FormatOption(suffix).value
    raise typer.BadParameter(
        f"expected an output that ends in .npy or .jsonl, received {output.name}; "
        "or choose with --format.",
        param_hint="--output",
    )


def embed_to_file(
    stream: IO[bytes],
    source: str,
    output: Path,
    model: str,
    layout: Format,
    options: dict[str, Any],
) -> None:
    """Embeds a seekable `stream` into `output`, continuing what an earlier call left."""
    embedded(stream, source, output, model, layout, options, shown=output).finish()


def embedded(
    stream: IO[bytes],
    source: str,
    output: Path,
    model: str,
    layout: Format,
    options: dict[str, Any],
    *,
    shown: Path,
) -> EmbeddingJob:
    """The whole work of embedding a seekable `stream`, still beside `output`.

    What an earlier call left of it is continued. The messages call the result `shown`.
    """
    found = survey(stream, source=source)
    encoder = load_encoder(model)
    job = EmbeddingJob(
        output,
        JobDescription(
            found.sha256,
            found.lines,
            encoder.identity,
            encoder.dimension,
            layout,
        ),
    )
    if not job.open():
        say(f"{job.folder} was of other texts, another model or another format: starting anew")
    if job.rows_done:
        say(f"continuing {shown} after {job.rows_done:,} of {found.lines:,} rows")
    started, before = time.monotonic(), job.rows_done
    try:
        _run(job, stream, source, encoder, options)
        job.whole_file()
    except KeyboardInterrupt as interrupt:
        say(
            f"interrupted: {job.rows_done:,} of {found.lines:,} rows wait in {job.folder}; "
            "the same command continues"
        )
        raise typer.Exit(130) from interrupt
    seconds = time.monotonic() - started
    speed = (found.lines - before) / max(seconds, 1e-9)
    say(f"{shown}: {found.lines:,} rows of {encoder.dimension} ({speed:,.0f} texts/s)")
    say_truncated(encoder, job.truncated, found.lines)
    return job


def _run(
    job: EmbeddingJob,
    stream: IO[bytes],
    source: str,
    encoder: SentenceEncoder,
    options: dict[str, Any],
) -> None:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TimeRemainingColumn

    from use_st5._progress_bars import ProgressBars

    lines = itertools.islice(read_lines(stream, source=source), job.rows_done, None)
    terminal = Console(stderr=True)
    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with ProgressBars(*columns, console=terminal, disable=not terminal.is_terminal) as progress:
        task = progress.add_task("rows", total=job.description.rows, completed=job.rows_done)
        for texts in _chunks(lines, rows=_CHUNK_ROWS):
            vectors, cut = encode_counting(encoder, texts, show_progress=False, **options)
            job.append(texts, vectors, truncated=cut)
            progress.update(task, completed=job.rows_done)


def _to_standard_output(
    source: str, model: str, layout: FormatOption, options: dict[str, Any]
) -> None:
    if layout is not FormatOption.JSONL:
        raise typer.BadParameter("standard output takes jsonl alone.", param_hint="--format")
    with open_input(source) as stream:
        encoder = load_encoder(model)
        total = truncated = 0
        with progress_lines(lambda: f"rows: {total:,}"):
            for texts in _chunks(read_lines(stream, source=source), rows=_STREAMED_ROWS):
                vectors, cut = encode_counting(encoder, texts, show_progress=False, **options)
                sys.stdout.buffer.write(to_bytes(texts, vectors, "jsonl"))
                sys.stdout.buffer.flush()
                total, truncated = total + len(texts), truncated + cut
    say_truncated(encoder, truncated, total)


def _chunks(lines: Iterator[str], *, rows: int) -> Iterator[list[str]]:
    return in_chunks(lines, rows=rows, characters=_CHUNK_CHARACTERS, length=len)
