"""`use-st5 report`: evaluated models side by side."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from use_st5.cli.output import echo, manual
from use_st5.io.files import sole_writer

if TYPE_CHECKING:
    from use_st5.evaluation.runner import EvaluationRecord

HELP = manual(
    """Make tables and plots from the files that `use-st5 evaluate` wrote.

    The file report.md shows the models side by side in Markdown: which is best at what, the
    differences to a baseline with 95 % intervals, and what was not measured. If matplotlib is
    installed (extra plots), it shows plots, which are .png files beside it.

    NAME=FILE gives a model another name, for example if two have the same. The models appear in the
    order of the arguments.""",
    "use-st5 report evaluation/use_dan_en.json evaluation/all-MiniLM-L6-v2.json",
    "use-st5 report before=old/use_dan_en.json after=evaluation/use_dan_en.json --out compared",
)


def report(
    records: Annotated[
        list[str], typer.Argument(metavar="[NAME=]FILE...", help="Files of `use-st5 evaluate`.")
    ],
    output: Annotated[Path, typer.Option("--out", "-o", help="The folder to write.")] = Path(
        "report"
    ),
    baseline: Annotated[
        str | None, typer.Option(metavar="NAME", help="A model. Default: the first.")
    ] = None,
) -> None:
    """Compares evaluations in tables and plots."""
    read = _read(records)
    with sole_writer(output, inside=True):
        from use_st5.evaluation.report import write_report

        written = write_report(read, output, baseline=baseline)
    for path in written:
        echo(str(path))


def _read(arguments: list[str]) -> list[EvaluationRecord]:
    """The records, with the names of the arguments."""
    from use_st5.evaluation.runner import EvaluationRecord

    files: dict[str, str] = {}
    records = []
    for argument in arguments:
        name, equals, file = argument.partition("=")
        if not equals or Path(argument).is_file():
            name, file = "", argument
        if not Path(file).is_file():
            raise FileNotFoundError(f"{file}: expected a file of `use-st5 evaluate`, found none")
        record = EvaluationRecord.read(file)
        if name:
            record = dataclasses.replace(record, model={**record.model, "name": name})
        name = record.model["name"]
        if name in files:
            both = f"{name} in {files[name]} and {file}"
            raise ValueError(f"expected different names, received {both}; give NAME={file}")
        files[name] = file
        records.append(record)
    return records
