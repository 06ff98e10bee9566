"""`use-st5 embed`: computes vectors of texts."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, Literal

import msgspec
import typer

from use_st5.cli.embed_corpus import (
    Corpus,
    IdFieldOption,
    InputFormatOption,
    RunnerOption,
    RunnerOptions,
    TextFieldOption,
)
from use_st5.cli.files import STDIN, ColumnOption, count_lines, open_texts, sole_file
from use_st5.cli.models import (
    DEFAULT_MODEL,
    BackendChoice,
    BackendOption,
    ModelChoice,
    ModelOption,
    PromptNameOption,
    PromptOption,
    encode_counting,
    load_encoder,
    say_truncated,
)
from use_st5.cli.output import manual, say, waiting
from use_st5.io.files import atomic_path, sole_writer, space_for
from use_st5.io.progress_lines import progress_lines
from use_st5.io.records import Count, read_record
from use_st5.io.remote_files import remote_path, staging_path, upload
from use_st5.io.streams import in_chunks

if TYPE_CHECKING:
    import numpy as np

    from use_st5.encode.encoder import SentenceEncoder

# A chunk is the input of one call of the encoder, and an interruption can lose one chunk. It ends
# when one of these two limits is reached.
_CHUNK_ROWS = 4096
_CHUNK_CHARACTERS = 4_000_000
# Smaller chunks appear on standard output sooner.
_STREAMED_ROWS = 256

HELP = manual(
    r"""Compute a vector for each line of a text.

    Row i of the result belongs to line i of the input. An empty line is an empty text, and has a
    row too. Texts are UTF-8, plain or compressed by gzip. For a table (.csv, .tsv, .jsonl,
    .parquet), --column names the column with the texts.

    [bold]-o FILE[/bold] writes a NumPy array (.npy: float32, \[lines, dimension]) or JSON lines
    (.jsonl: an object with "text" and "embedding" in each line). FILE appears when it is complete.
    Unfinished work stays in FILE.partial. After an interruption the same command continues, also
    if the texts come through a pipe. Without -o, JSON lines go to standard output.

    INPUT and FILE may be on gs:// or any other file system of TensorFlow. Unfinished work is then
    in the cache of this machine.

    With [bold]--runner[/bold] Apache Beam embeds many files (extra beam). INPUT is a pattern in
    quotes, for .txt, .jsonl, .parquet or .tfrecord files. -o is a folder: it gets
    vectors-*.parquet with the columns id, text and embedding. An id is FILE:NUMBER, or the field
    that --id names. Rows without a vector go to bad-*.jsonl, with the reason. embeddings.json is
    written last and has the counts. Options of the runner follow after --.

    Some models have prompts for queries and documents (see use-st5 info). --prompt-name gives the
    name of the prompt to put before each text. Without it, the model's default prompt is used, if
    it has one.

    Some models read a limited number of tokens (see use-st5 info). The last line on standard error
    says how many texts were cut.""",
    "use-st5 embed sentences.txt -o vectors.npy",
    "use-st5 embed questions.csv --column question -o vectors.npy",
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
    backend: BackendChoice = BackendOption.TENSORFLOW,
    prompt: PromptOption = None,
    prompt_name: PromptNameOption = None,
    form: Annotated[
        FormatOption | None,
        typer.Option("--format", help="Default: from the suffix of the output."),
    ] = None,
    batch_size: Annotated[
        int | None,
        typer.Option(min=1, help="Texts in one call of the model. Default: the model's own."),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the output if it exists.")
    ] = False,
    column: ColumnOption = None,
    runner: RunnerOption = None,
    text_field: TextFieldOption = None,
    id_field: IdFieldOption = None,
    input_format: InputFormatOption = None,
) -> None:
    """Turns the lines of a text into vectors."""
    corpus = Corpus(source, text_field, id_field, input_format, tuple(runner_options or ()))
    chosen = ModelChoice(model, backend, prompt, prompt_name)
    if runner is not None:
        if column is not None:
            raise typer.BadParameter("expected --text with --runner.", param_hint="--column")
        corpus.embed(runner, output, form, chosen, batch_size=batch_size, overwrite=overwrite)
        return
    corpus.refuse_without_runner()
    options = {} if batch_size is None else {"batch_size": batch_size}
    if output is None or output == STDIN:
        _to_standard_output(source, column, chosen, form or FormatOption.JSONL, options)
        return
    _to_named_file(source, column, Path(output), chosen, form, options, overwrite=overwrite)


def _to_named_file(
    source: str,
    column: str | None,
    output: Path,
    model: ModelChoice,
    form: FormatOption | None,
    options: dict[str, Any],
    *,
    overwrite: bool,
) -> None:
    layout = form.value if form else _format_by_suffix(output)
    remote = remote_path(output)
    place = staging_path(remote) if remote else output.absolute()
    if remote:
        place.parent.mkdir(parents=True, exist_ok=True)
    elif not place.parent.is_dir():
        raise FileNotFoundError(
            f"{output.parent}: expected a folder to write to, found none. Make it first."
        )
    with (
        sole_file(output, overwrite=overwrite, remote=True, inputs=[source]),
        sole_writer(place),
        open_texts(source, column=column, beside=place) as texts,
    ):
        target = place if remote else output
        if target.is_symlink():  # The rows grow beside the file that it names.
            target = target.resolve()
        job = embedded(texts, target, model, layout, options, shown=target)
        if not remote:
            job.finish()
            return
        with waiting(f"uploading it to {remote}"):
            upload(job.whole_file(), remote)
        job.discard()
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


def embedded(
    texts: Iterable[str],
    output: Path,
    model: ModelChoice,
    layout: Format,
    options: dict[str, Any],
    *,
    shown: Path,
    usual: Sequence[str] = (),
) -> EmbeddingJob:
    """Embeds texts, which are read twice; the result stays in the side folder of `output`.

    Continues the unfinished work of an earlier call. The messages call the result `shown`. `usual`
    names prompts, as for `ModelChoice.prompt_of`.
    """
    line_count = count_lines(texts)
    encoder = load_encoder(model)
    options = {**options, "prompt": model.prompt_of(encoder, usual)}
    job = EmbeddingJob(
        output,
        JobDescription(
            line_count.sha256,
            line_count.lines,
            encoder.identity,
            encoder.dimension,
            layout,
            options["prompt"],
        ),
    )
    if not job.open():
        say(f"{job.folder} is for other texts, another model, prompt or format: starting again")
    if job.rows_done:
        say(f"continuing {shown} after {job.rows_done:,} of {line_count.lines:,} rows")
    started, rows_before = time.monotonic(), job.rows_done
    try:
        _run(job, texts, encoder, options)
        job.whole_file()
    except KeyboardInterrupt as interrupt:
        say(
            f"interrupted: {job.rows_done:,} of {line_count.lines:,} rows are in {job.folder}; "
            "the same command continues"
        )
        raise typer.Exit(130) from interrupt
    seconds = time.monotonic() - started
    speed = (line_count.lines - rows_before) / max(seconds, 1e-9)
    say(f"{shown}: {line_count.lines:,} rows of {encoder.dimension} ({speed:,.0f} texts/s)")
    say_truncated(encoder, job.truncated, line_count.lines)
    return job


def _run(
    job: EmbeddingJob,
    texts: Iterable[str],
    encoder: SentenceEncoder,
    options: dict[str, Any],
) -> None:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TimeRemainingColumn

    from use_st5.io.progress_bars import ProgressBars

    lines = itertools.islice(texts, job.rows_done, None)
    terminal = Console(stderr=True)
    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with ProgressBars(*columns, console=terminal, disable=not terminal.is_terminal) as progress:
        task = progress.add_task("rows", total=job.description.rows, completed=job.rows_done)
        for chunk in _chunks(lines, rows=_CHUNK_ROWS):
            vectors, cut = encode_counting(encoder, chunk, show_progress=False, **options)
            job.append(chunk, vectors, truncated=cut)
            progress.update(task, completed=job.rows_done)


def _to_standard_output(
    source: str,
    column: str | None,
    model: ModelChoice,
    layout: FormatOption,
    options: dict[str, Any],
) -> None:
    if layout is not FormatOption.JSONL:
        raise typer.BadParameter(
            f"expected jsonl for standard output, received {layout.value}. Give -o FILE.",
            param_hint="--format",
        )
    with open_texts(source, column=column) as lines:
        encoder = load_encoder(model)
        options = {**options, "prompt": model.prompt_of(encoder)}
        total = truncated = 0
        with progress_lines(lambda: f"rows: {total:,}"):
            for texts in _chunks(iter(lines), rows=_STREAMED_ROWS):
                vectors, cut = encode_counting(encoder, texts, show_progress=False, **options)
                sys.stdout.buffer.write(to_bytes(texts, vectors, "jsonl"))
                sys.stdout.buffer.flush()
                total, truncated = total + len(texts), truncated + cut
    say_truncated(encoder, truncated, total)


def _chunks(lines: Iterator[str], *, rows: int) -> Iterator[list[str]]:
    return in_chunks(lines, rows=rows, characters=_CHUNK_CHARACTERS, length=len)


Format = Literal["npy", "jsonl"]

# This file marks a folder as ours. In a folder without it, nothing is removed.
_MARKER = "use_st5.partial"
_MARKED = "Unfinished work of use-st5 embed, format 1. The same command continues it.\n"
_DATA, _STATE = "data", "state.json"
# Temporary files of a process that was killed while it wrote the state.
_LEFTOVERS = f".{Path(_STATE).stem}.*{Path(_STATE).suffix}"

_BYTES_PER_NUMBER = 4
_BLOCK = 2**20


@dataclass(frozen=True)
class JobDescription:
    """The values that must be equal for unfinished work to be continued.

    Attributes:
        input_sha256: hash of the texts.
        rows: number of texts, which is the number of rows of the output.
        model: the identity of the model, which changes with its files.
        dimension: length of a vector.
        format: "npy" or "jsonl".
        prompt: the text that is put before each text.
    """

    input_sha256: str
    rows: int
    model: str
    dimension: int
    format: Format
    prompt: str = ""


class _State(msgspec.Struct):
    """The part of the work that is safely on the disk."""

    description: JobDescription
    rows_done: Count
    truncated: Count
    bytes: Count


class EmbeddingJob:
    """Appends rows to a file in a side folder and moves it to its place when it is complete.

    The side folder `NAME.partial` holds the growing file and a state: the description, and how
    many rows and bytes are safely on the disk. A process that dies between the two writes leaves
    surplus bytes, which the next process cuts off. The state also counts the texts that the model
    cut.
    A third file marks the folder as ours; a folder without it, or without a state, is not touched.
    For the same texts and model, the finished file does not depend on interruptions. Two processes
    must not have the same job (`sole_writer`).
    """

    def __init__(self, output: Path, description: JobDescription) -> None:
        self.output = output
        self.description = description
        self.folder = output.with_name(f"{output.name}.partial")
        self.rows_done = 0
        self.truncated = 0
        self._bytes = 0
        self._data = self.folder / _DATA
        self._state = self.folder / _STATE

    def open(self) -> bool:
        """Continues the unfinished work if it has this description, else starts again.

        Returns:
            False if work with another description was deleted, else True.

        Raises:
            FileExistsError: A file or folder with the side folder's name is not ours.
        """
        state = self._read_state()
        if state is not None and state.description == self.description and self._holds(state):
            os.truncate(self._data, state.bytes)
            self.rows_done, self.truncated = state.rows_done, state.truncated
            self._bytes = state.bytes
            return True
        existed = self._check_ours(state)
        self.discard()
        self.folder.mkdir(exist_ok=True)
        with space_for(self.output):
            (self.folder / _MARKER).write_text(_MARKED, encoding="utf-8")
            self._bytes = self._data.write_bytes(self._header())
        self._write_state()
        return not existed

    def _check_ours(self, state: _State | None) -> bool:
        """Checks that the side folder may be written; returns whether it holds work.

        Version 0.2 wrote no marker; its folders are recognised by their state.
        """
        folder = self.folder
        names = [each.name for each in folder.iterdir()] if folder.is_dir() else []
        if state is not None or _MARKER in names:
            return True
        if names or (folder.exists() and not folder.is_dir()):
            raise FileExistsError(
                f"{folder}: expected no such folder, or unfinished work of use-st5 embed, found "
                f"{'other files' if names else 'a file'}; move it away, or choose another output"
            )
        return False

    def append(self, texts: list[str], vectors: np.ndarray, *, truncated: int) -> None:
        """Adds float32 `vectors` `[texts, dimension]`; on return they are on the disk.

        Args:
            texts: the texts.
            vectors: the vectors of the texts.
            truncated: number of texts that the model cut.

        Raises:
            ValueError: the model gave another shape than it had announced.
        """
        expected = (len(texts), self.description.dimension)
        if vectors.shape != expected:
            raise ValueError(
                f"expected vectors of shape {expected} from the model, received {vectors.shape}"
            )
        with space_for(self.output), self._data.open("ab") as data:
            self._bytes += data.write(to_bytes(texts, vectors, self.description.format))
            data.flush()
            os.fsync(data.fileno())
        self.rows_done += len(texts)
        self.truncated += truncated
        self._write_state()

    def finish(self) -> None:
        """Moves the complete file to the output and removes the side folder.

        Raises:
            ValueError: as in `whole_file`.
        """
        self.whole_file().replace(self.output)
        self.discard()

    def discard(self) -> None:
        """Removes the side folder's own files, and the folder if it is then empty."""
        for path in (self._data, self._state, *self.folder.glob(_LEFTOVERS)):
            path.unlink(missing_ok=True)
        # The marker is removed last, so that an interrupted removal can be continued.
        (self.folder / _MARKER).unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self.folder.rmdir()

    def whole_file(self) -> Path:
        """The file with all rows, after a check that it is complete.

        Raises:
            ValueError: rows are missing, because the input changed while it was read, or the file
                does not have the size that was written.
        """
        if self.rows_done != self.description.rows:
            raise ValueError(
                f"expected {self.description.rows} texts, read {self.rows_done}: the input changed "
                "while it was read; start the command again"
            )
        self._check_bytes()
        return self._data

    def _check_bytes(self) -> None:
        """Checks the size of the complete file; for "npy", the rows alone determine it."""
        expected, size = self._bytes, self._data.stat().st_size
        if self.description.format == "npy":
            expected = self._npy_bytes(self.description.rows)
        if size != expected:
            raise ValueError(
                f"expected {expected:,} bytes in {self._data}, found {size:,}: another process "
                f"changed it; remove {self.folder} and start the command again"
            )

    def _read_state(self) -> _State | None:
        # If the state cannot be read, the work starts again.
        with contextlib.suppress(OSError, ValueError):
            return read_record(self._state, _State, remedy="The work starts again.")
        return None

    def _holds(self, state: _State) -> bool:
        """Whether the growing file has the rows that a state counts."""
        if not self._data.is_file():
            return False
        rows = state.rows_done
        if not state.truncated <= rows <= self.description.rows:
            return False
        if self.description.format == "npy":
            consistent = state.bytes == self._npy_bytes(rows)
            return consistent and self._data.stat().st_size >= state.bytes
        with self._data.open("rb") as data:
            return _lines(data, state.bytes) == rows

    def _write_state(self) -> None:
        state = {
            "description": dataclasses.asdict(self.description),
            "rows_done": self.rows_done,
            "truncated": self.truncated,
            "bytes": self._bytes,
        }
        with atomic_path(self._state) as temporary:
            temporary.write_text(json.dumps(state, indent=1), encoding="utf-8")

    def _npy_bytes(self, rows: int) -> int:
        return len(self._header()) + _BYTES_PER_NUMBER * rows * self.description.dimension

    def _header(self) -> bytes:
        if self.description.format == "jsonl":
            return b""
        import io

        import numpy as np

        header = io.BytesIO()
        shape = (self.description.rows, self.description.dimension)
        np.lib.format.write_array_header_1_0(
            header, {"descr": "<f4", "fortran_order": False, "shape": shape}
        )
        return header.getvalue()


def _lines(data: BinaryIO, size: int) -> int | None:
    """Number of lines in the first `size` bytes; None if these are not whole lines."""
    lines, last = 0, b"\n"
    while size and (block := data.read(min(size, _BLOCK))):
        lines, last, size = lines + block.count(b"\n"), block[-1:], size - len(block)
    return lines if last == b"\n" and not size else None


def to_bytes(texts: list[str], vectors: np.ndarray, layout: Format) -> bytes:
    """The rows of an output file, without its header.

    Args:
        texts: the texts.
        vectors: float32, `[texts, dimension]`.
        layout: "npy": little-endian numbers; "jsonl": an object with `text` and `embedding` a line.
    """
    if layout == "npy":
        return vectors.astype("<f4").tobytes()
    # Nine digits represent every float32 exactly.
    numbers = ",".join(["%.9g"] * vectors.shape[1])
    lines = [
        f'{{"text":{json.dumps(text, ensure_ascii=False)},"embedding":[{numbers % tuple(row)}]}}\n'
        for text, row in zip(texts, vectors.tolist(), strict=True)
    ]
    return "".join(lines).encode("utf-8")
