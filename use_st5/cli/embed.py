"""`use-st5 embed`: computes vectors of texts."""

from __future__ import annotations

import contextlib
import hashlib
import io
import itertools
import json
import os
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import msgspec
import typer

from use_st5.cli.files import STDIN, ColumnOption, open_texts, sole_file
from use_st5.cli.models import (
    DEFAULT_MODEL,
    BackendChoice,
    BatchSizeOption,
    ModelChoice,
    ModelOption,
    OverwriteOption,
    PromptNameOption,
    PromptOption,
    encode_counting,
    load_encoder,
    say_truncated,
)
from use_st5.cli.output import manual, say, waiting
from use_st5.io.files import remote_path, sole_writer, staging_path, upload
from use_st5.io.lines import in_chunks
from use_st5.io.progress import progress_bars, progress_lines
from use_st5.io.records import Count, read_record

if TYPE_CHECKING:
    import numpy as np


# A chunk is the input of one call of the encoder, and an interruption can lose one chunk. It ends
# when one of these two limits is reached.
_CHUNK_ROWS = 4096
_CHUNK_CHARACTERS = 4_000_000
# Smaller chunks appear on standard output sooner.
_STREAMED_ROWS = 256
_PANEL = "With --runner"

HELP = manual(
    r"""Compute a vector for each line of a text.

    Row i of the result belongs to line i of the input. An empty line is an empty text, and has a
    row too. Texts are UTF-8, plain or compressed by gzip. For a table (.csv, .tsv, .jsonl,
    .parquet), --column names the column with the texts.

    [bold]-o FILE[/bold] writes a NumPy array (.npy: float32, \[lines, dimension]) or JSON lines
    (.jsonl: an object with "text" and "embedding" in each line). FILE appears when it is complete.
    Unfinished work stays in FILE.partial. After an interruption the same command continues, also
    if the texts come through a pipe. Without -o, JSON lines go to standard output.

    INPUT and FILE may be on gs:// or any other file system of TensorFlow.

    With [bold]--runner[/bold] Apache Beam embeds many files (extra beam). INPUT is a pattern in
    quotes, for .txt, .jsonl, .parquet or .tfrecord files. -o is a folder: it gets
    vectors-*.parquet with the columns id, text and embedding. An id is FILE:NUMBER, or the field
    that --id names. Rows without a vector go to bad-*.jsonl, with the reason. embeddings.json is
    written last and has the counts. Options of the runner follow after --.

    Some models have prompts for queries and documents, and read a limited number of tokens (see
    use-st5 info). --prompt-name names a prompt to put before each text; else it is the model's
    default one, if any. The last line on standard error says how many texts were cut.""",
    "use-st5 embed sentences.txt -o vectors.npy",
    "use-st5 embed questions.csv --column question -o vectors.npy",
    "zcat corpus.gz | use-st5 embed - -o vectors.npy --batch-size 256",
    'echo "How old are you?" | use-st5 embed - | jq .embedding',
    "use-st5 embed sentences.txt -o vectors.jsonl --model path/to/my_model",
    "use-st5 embed 'corpus/*.jsonl' -o vectors --runner DirectRunner --text body --id key",
)


Format = Literal["npy", "jsonl"]


def embed(
    source: Annotated[
        str, typer.Argument(metavar="INPUT", help="A text file, or - for standard input.")
    ],
    runner_options: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[-- RUNNER OPTIONS]", help="With --runner: options of Beam's runner."
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", help="The file to write. Default: JSON lines to stdout."),
    ] = None,
    model: ModelOption = DEFAULT_MODEL,
    backend: BackendChoice = "tensorflow",
    prompt: PromptOption = None,
    prompt_name: PromptNameOption = None,
    form: Annotated[
        Format | None, typer.Option("--format", help="Default: from the suffix of the output.")
    ] = None,
    batch_size: BatchSizeOption = None,
    overwrite: OverwriteOption = False,
    column: ColumnOption = None,
    runner: Annotated[
        str | None,
        typer.Option(
            help="Embed files with Apache Beam: DirectRunner (this machine), DataflowRunner …",
            rich_help_panel=_PANEL,
        ),
    ] = None,
    text_field: Annotated[
        str | None,
        typer.Option("--text", help="Field with the text. Default: text.", rich_help_panel=_PANEL),
    ] = None,
    id_field: Annotated[
        str | None, typer.Option("--id", help="Field with the id.", rich_help_panel=_PANEL)
    ] = None,
    input_format: Annotated[
        Literal["text", "jsonl", "parquet", "tfrecord"] | None,
        typer.Option(help="Default: from the files' names.", rich_help_panel=_PANEL),
    ] = None,
) -> None:
    """Turns the lines of a text into vectors."""
    chosen = ModelChoice(model, backend, prompt, prompt_name)
    options: dict[str, Any] = {} if batch_size is None else {"batch_size": batch_size}
    if runner is not None:
        if column is not None or form is not None:
            raise typer.BadParameter("--runner takes --text instead of --column, and no --format.")
        if output is None or STDIN in (output, source):
            raise typer.BadParameter("--runner needs a pattern of files and -o FOLDER.")
        chosen.check_tensorflow("with --runner")
        fields = {"text_field": text_field, "id_field": id_field, "file_format": input_format}
        options |= {name: value for name, value in fields.items() if value}
        options |= {"runner": runner, "options": runner_options or (), "overwrite": overwrite}
        _with_beam(source, output, chosen, options)
        return
    named = {"--text": text_field, "--id": id_field, "--input-format": input_format}
    if wrong := [name for name, value in named.items() if value] or runner_options:
        raise typer.BadParameter(f"{wrong[0]} needs --runner. Without it, give one INPUT.")
    if output is None or output == STDIN:
        if form == "npy":
            raise typer.BadParameter("standard output gets jsonl only. Give -o FILE.")
        limits: dict[str, Any] = {"rows": _STREAMED_ROWS, "characters": _CHUNK_CHARACTERS}
        with open_texts(source, column=column) as lines:
            encoder = load_encoder(chosen)
            options["prompt"] = chosen.prompt_of(encoder)
            total = truncated = 0
            with progress_lines(lambda: f"rows: {total:,}"):
                for chunk in in_chunks(lines, length=len, **limits):
                    vectors, cut = encode_counting(encoder, chunk, show_progress=False, **options)
                    sys.stdout.buffer.write(to_bytes(chunk, vectors, "jsonl"))
                    sys.stdout.buffer.flush()
                    total, truncated = total + len(chunk), truncated + cut
        say_truncated(encoder, truncated, total)
        return
    target = Path(output)
    layout = form or target.suffix.removeprefix(".")
    if layout not in get_args(Format):
        raise typer.BadParameter(f"{output} ends neither in .npy nor in .jsonl: give --format.")
    remote = remote_path(output)
    # The rows grow beside the file that a link names.
    grown = staging_path(remote) if remote else target.resolve()
    with (
        sole_file(target, overwrite=overwrite, remote=True, inputs=[source]),
        sole_writer(grown),
        open_texts(source, column=column, beside=grown) as texts,
    ):
        shown = grown if remote else target
        job = embedded(texts, grown, chosen, layout, options, shown=shown)
        if remote:
            with waiting(f"uploading it to {remote}"):
                upload(job.whole_file(), remote)
            say(f"written: {remote}")
        else:
            job.whole_file().replace(grown)
        job.discard()


def _with_beam(pattern: str, folder: str, model: ModelChoice, options: dict[str, Any]) -> None:
    """Embeds many files into a folder and prints the counts."""
    from use_st5.beam.corpus import embed_corpus

    with waiting(f"embedding {pattern}"):
        prompt, prompt_name = model.prompt, model.prompt_name
        report = embed_corpus(
            pattern, folder, model=model.name, prompt=prompt, prompt_name=prompt_name, **options
        )
    say(f"{folder}: {report.rows:,} rows by {report.model}, from {report.files:,} files")
    if report.bad_rows:
        say(f"{report.bad_rows:,} rows have no vector: {folder}/bad-*.jsonl says why")
    if report.truncated:
        cut = f"{report.truncated:,} of {report.rows:,} texts are longer than the model reads"
        say(f"{cut}; the rest was not read")
    if report.bad_rows and not report.rows:
        raise ValueError(f"{pattern}: no row has a text; {folder}/bad-*.jsonl has the reasons")


def embedded(
    texts: Iterable[str],
    output: Path,
    model: ModelChoice,
    layout: str,
    options: dict[str, Any],
    *,
    shown: Path,
    usual: Sequence[str] = (),
) -> EmbeddingJob:
    """Embeds texts, which are read twice; the result stays in the side folder of `output`.

    Continues the unfinished work of an earlier call. The messages call the result `shown`. `usual`
    names prompts, as for `ModelChoice.prompt_of`.
    """
    digest, total = hashlib.sha256(), 0
    for text in texts:
        digest.update(text.encode() + b"\n")
        total += 1
    encoder = load_encoder(model)
    options = {**options, "prompt": model.prompt_of(encoder, usual)}
    description = {
        "input_sha256": digest.hexdigest(),
        "rows": total,
        "model": encoder.identity,
        "dimension": encoder.dimension,
        "format": layout,
        "prompt": options["prompt"],
    }
    job = EmbeddingJob(output, description)
    if not job.open():
        say(f"{job.folder} is for other texts, another model, prompt or format: starting again")
    if job.rows_done:
        say(f"continuing {shown} after {job.rows_done:,} of {total:,} rows")
    started, rows_before = time.monotonic(), job.rows_done
    limits: dict[str, Any] = {"rows": _CHUNK_ROWS, "characters": _CHUNK_CHARACTERS, "length": len}
    try:
        with progress_bars() as progress:
            task = progress.add_task("rows", total=total, completed=job.rows_done)
            for chunk in in_chunks(itertools.islice(texts, job.rows_done, None), **limits):
                vectors, cut = encode_counting(encoder, chunk, show_progress=False, **options)
                job.append(chunk, vectors, truncated=cut)
                progress.update(task, completed=job.rows_done)
        job.whole_file()
    except KeyboardInterrupt as interrupt:
        done = f"{job.rows_done:,} of {total:,} rows are in {job.folder}"
        say(f"interrupted: {done}; the same command continues")
        raise typer.Exit(130) from interrupt
    seconds = time.monotonic() - started
    speed = (total - rows_before) / max(seconds, 1e-9)
    say(f"{shown}: {total:,} rows of {encoder.dimension} ({speed:,.0f} texts/s)")
    say_truncated(encoder, job.truncated, total)
    return job


class _State(msgspec.Struct):
    """What is safely on the disk: of which work, how many rows and bytes, how many texts cut."""

    description: dict[str, Any]
    rows_done: Count
    truncated: Count
    bytes: Count


class EmbeddingJob:
    """Appends rows to the file `data` in the folder `NAME.partial`.

    `state.json` beside it counts the rows and bytes that are safely on the disk; a folder without
    it is not ours. What a killed process wrote after it is cut off. For the same texts and model,
    the finished file does not depend on interruptions. Two processes must not have the same job
    (`sole_writer`).

    Args:
        output: The file to write in the end.
        description: The values that must be equal for unfinished work to be continued; of these,
            the job itself reads "rows", "dimension" and "format".
    """

    def __init__(self, output: Path, description: dict[str, Any]) -> None:
        self.description = description
        self.folder = output.with_name(f"{output.name}.partial")
        self.rows_done = self.truncated = self._bytes = 0
        self._data, self._state, self._new_state = (
            self.folder / name for name in ("data", "state.json", "state.new")
        )

    def open(self) -> bool:
        """Continues the unfinished work if it has this description, else starts again.

        False: work with another description was deleted.
        """
        state = None
        if self.folder.exists() and [*self.folder.iterdir()] not in ([], [self._new_state]):
            try:
                state = read_record(self._state, _State, remedy="")
            except (FileNotFoundError, ValueError) as error:
                raise FileExistsError(f"{self.folder}: move these other files away") from error
        header = io.BytesIO()
        if self.description["format"] == "npy":
            import numpy as np

            shape = (self.description["rows"], self.description["dimension"])
            facts = {"descr": "<f4", "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(header, facts)
        if (
            state is not None
            and state.description == self.description
            and self._data.is_file()
            and header.tell() <= state.bytes <= self._data.stat().st_size
        ):
            os.truncate(self._data, state.bytes)
            self.rows_done, self.truncated = state.rows_done, state.truncated
            self._bytes = state.bytes
            return True
        self.folder.mkdir(exist_ok=True)
        self._write_state()  # From here on the folder is ours.
        self._bytes = self._data.write_bytes(header.getvalue())
        self._write_state()
        return state is None

    def append(self, texts: list[str], vectors: np.ndarray, *, truncated: int) -> None:
        """Adds float32 `vectors` `[texts, dimension]`, of which the model cut `truncated` texts."""
        with self._data.open("ab") as data:
            self._bytes += data.write(to_bytes(texts, vectors, self.description["format"]))
            data.flush()
            os.fsync(data.fileno())
        self.rows_done += len(texts)
        self.truncated += truncated
        self._write_state()

    def whole_file(self) -> Path:
        """The file with all rows; a ValueError if the input changed while it was read."""
        if self.rows_done != self.description["rows"]:
            raise ValueError("the input changed while it was read; start the command again")
        return self._data

    def discard(self) -> None:
        """Removes the folder's own files, and the folder if it is then empty."""
        for path in (self._data, self._new_state, self._state):
            path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self.folder.rmdir()

    def _write_state(self) -> None:
        state = _State(self.description, self.rows_done, self.truncated, self._bytes)
        self._new_state.write_bytes(msgspec.json.encode(state))
        self._new_state.replace(self._state)


def to_bytes(texts: list[str], vectors: np.ndarray, layout: str) -> bytes:
    """The rows of an output file, without its header; vectors are float32 `[texts, dimension]`."""
    if layout == "npy":
        return vectors.astype("<f4").tobytes()
    # Nine digits represent every float32 exactly.
    numbers = ",".join(["%.9g"] * vectors.shape[1])
    lines = [
        f'{{"text":{json.dumps(text, ensure_ascii=False)},"embedding":[{numbers % tuple(row)}]}}\n'
        for text, row in zip(texts, vectors.tolist(), strict=True)
    ]
    return "".join(lines).encode("utf-8")
