"""`use-st5 embed --runner`: many files to vectors, on Apache Beam."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

import typer

from use_st5.cli.files import STDIN
from use_st5.cli.output import say, waiting

_PANEL = "With --runner"


class InputFormat(StrEnum):
    """The formats that `--input-format` takes."""

    TEXT = "text"
    JSONL = "jsonl"
    PARQUET = "parquet"
    TFRECORD = "tfrecord"


RunnerOptions = Annotated[
    list[str] | None,
    typer.Argument(metavar="[-- RUNNER OPTIONS]", help="With --runner: what Beam's runner takes."),
]
RunnerOption = Annotated[
    str | None,
    typer.Option(
        "--runner",
        help="Embed files with Apache Beam: DirectRunner (this machine), DataflowRunner, "
        "FlinkRunner, SparkRunner or another of Beam's.",
        rich_help_panel=_PANEL,
    ),
]
TextFieldOption = Annotated[
    str | None,
    typer.Option("--text", help="Field that is the text. Default: text.", rich_help_panel=_PANEL),
]
IdFieldOption = Annotated[
    str | None,
    typer.Option("--id", help="Field that is the id.", rich_help_panel=_PANEL),
]
InputFormatOption = Annotated[
    InputFormat | None,
    typer.Option("--input-format", help="Default: by the files' names.", rich_help_panel=_PANEL),
]


@dataclass(frozen=True)
class Corpus:
    """What the command line says of files that a runner is to read."""

    pattern: str
    text_field: str | None
    id_field: str | None
    file_format: InputFormat | None
    runner_options: tuple[str, ...]

    def refuse_without_runner(self) -> None:
        """Raises typer.BadParameter where something is said that a runner alone would hear."""
        said = {
            "--text": self.text_field,
            "--id": self.id_field,
            "--input-format": self.file_format,
            " ".join(self.runner_options): self.runner_options,
        }
        for name, value in said.items():
            if value:
                raise typer.BadParameter(f"{name} is for --runner alone.", param_hint=name)

    def embed(
        self,
        runner: str,
        output: str | None,
        form: str | None,
        model: str,
        *,
        batch_size: int | None,
        overwrite: bool,
    ) -> None:
        """Embeds the files into a folder and says what became of them.

        Raises:
            typer.BadParameter: There is no output, or something is said that a runner cannot do.
            ValueError: No row had a text.
        """
        if output is None or STDIN in (output, self.pattern):
            raise typer.BadParameter(
                "--runner reads files and writes a folder: give a pattern, and -o FOLDER.",
                param_hint="--runner",
            )
        if form is not None:
            raise typer.BadParameter("--runner writes Parquet alone.", param_hint="--format")
        from use_st5.beam.corpus import embed_corpus

        with waiting(f"embedding {self.pattern}"):
            report = embed_corpus(
                self.pattern,
                output,
                model=model,
                runner=runner,
                options=self.runner_options,
                text_field=self.text_field or "text",
                id_field=self.id_field,
                file_format=self.file_format.value if self.file_format else None,
                batch_size=batch_size,
                overwrite=overwrite,
            )
        say(f"{output}: {report.rows:,} rows by {report.model}, from {report.files:,} files")
        if report.bad_rows:
            say(f"{report.bad_rows:,} rows have no vector: {output}/bad-*.jsonl says why")
        if report.truncated:
            say(
                f"{report.truncated:,} of {report.rows:,} texts are longer than the model reads; "
                "the rest of them was not read"
            )
        if report.bad_rows and not report.rows:
            raise ValueError(f"{self.pattern}: no row has a text that can be embedded")
