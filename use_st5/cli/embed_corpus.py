"""`use-st5 embed --runner`: computes vectors of many files with Apache Beam."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

import typer

from use_st5.cli.files import STDIN
from use_st5.cli.models import ModelChoice
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
    typer.Argument(metavar="[-- RUNNER OPTIONS]", help="With --runner: options of Beam's runner."),
]
RunnerOption = Annotated[
    str | None,
    typer.Option(
        "--runner",
        help="Embed files with Apache Beam: DirectRunner (this machine), DataflowRunner, "
        "FlinkRunner, SparkRunner or another runner of Beam.",
        rich_help_panel=_PANEL,
    ),
]
TextFieldOption = Annotated[
    str | None,
    typer.Option("--text", help="Field with the text. Default: text.", rich_help_panel=_PANEL),
]
IdFieldOption = Annotated[
    str | None,
    typer.Option("--id", help="Field with the id.", rich_help_panel=_PANEL),
]
InputFormatOption = Annotated[
    InputFormat | None,
    typer.Option("--input-format", help="Default: from the files' names.", rich_help_panel=_PANEL),
]


@dataclass(frozen=True)
class Corpus:
    """The arguments of `embed` that belong to a runner of Beam."""

    pattern: str
    text_field: str | None
    id_field: str | None
    file_format: InputFormat | None
    runner_options: tuple[str, ...]

    def refuse_without_runner(self) -> None:
        """Refuses the options that only a runner takes."""
        runner_only = {
            "--text": self.text_field,
            "--id": self.id_field,
            "--input-format": self.file_format,
            " ".join(self.runner_options): self.runner_options,
        }
        for name, value in runner_only.items():
            if value:
                raise typer.BadParameter(
                    f"{name} needs --runner. Without it, give one INPUT and no runner options.",
                    param_hint=name,
                )

    def embed(
        self,
        runner: str,
        output: str | None,
        form: str | None,
        model: ModelChoice,
        *,
        batch_size: int | None,
        overwrite: bool,
    ) -> None:
        """Embeds the files into a folder and prints the counts."""
        if output is None or STDIN in (output, self.pattern):
            raise typer.BadParameter(
                "expected a pattern of files and -o FOLDER; --runner reads no standard input.",
                param_hint="--runner",
            )
        if form is not None:
            raise typer.BadParameter(
                "expected no --format with --runner: it writes Parquet.", param_hint="--format"
            )
        model.check_tensorflow("with --runner")
        from use_st5.beam.corpus import embed_corpus

        with waiting(f"embedding {self.pattern}"):
            report = embed_corpus(
                self.pattern,
                output,
                model=model.name,
                runner=runner,
                options=self.runner_options,
                text_field=self.text_field or "text",
                id_field=self.id_field,
                file_format=self.file_format.value if self.file_format else None,
                batch_size=batch_size,
                prompt=model.prompt,
                prompt_name=model.prompt_name,
                overwrite=overwrite,
            )
        say(f"{output}: {report.rows:,} rows by {report.model}, from {report.files:,} files")
        if report.bad_rows:
            say(f"{report.bad_rows:,} rows have no vector: {output}/bad-*.jsonl says why")
        if report.truncated:
            say(
                f"{report.truncated:,} of {report.rows:,} texts are longer than the model reads; "
                "the rest was not read"
            )
        if report.bad_rows and not report.rows:
            raise ValueError(
                f"{self.pattern}: expected rows with a text, found none; {output}/bad-*.jsonl "
                "has the reasons"
            )
