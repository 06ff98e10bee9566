"""Shared output of the commands: help texts, tables for people, tab-separated lines in a pipe."""

from __future__ import annotations

import csv
import inspect
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import typer

from use_st5._files import atomic_path
from use_st5._progress import waiting as waiting

_TABLES = (".tsv", ".csv", ".jsonl")


def say(message: str) -> None:
    """Writes one line to standard error; standard output is for the results."""
    typer.echo(message, err=True)


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, title: str = "") -> None:
    """Prints a table: drawn in a terminal, tab-separated (with a header line) in a pipe.

    Args:
        columns: the headings.
        rows: one text per heading; tabs and line breaks inside become spaces in a pipe.
        title: printed above the table, in a terminal only.
    """
    if not sys.stdout.isatty():
        for row in [columns, *rows]:
            typer.echo("\t".join(" ".join(cell.split()) for cell in row))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(title) if title else None, title_justify="left")
    for column in columns:
        table.add_column(Text(column), overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    Console().print(table)


def check_table_name(path: Path, *, option: str) -> None:
    """Checks that a file to write says by its suffix which kind of table it shall be.

    Raises:
        typer.BadParameter: It does not; names the option.
    """
    if path.suffix.lower() not in _TABLES:
        raise typer.BadParameter(
            f"expected a file that ends in {', '.join(_TABLES)}, received {path}.",
            param_hint=option,
        )


def write_table(path: Path, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Writes a table in the format that the suffix says, as `use-st5 train` reads it."""
    with atomic_path(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        if path.suffix.lower() == ".jsonl":
            for row in rows:
                named = dict(zip(columns, row, strict=True))
                file.write(json.dumps(named, ensure_ascii=False) + "\n")
        elif path.suffix.lower() == ".csv":
            csv.writer(file, lineterminator="\n").writerows([columns, *rows])
        else:  # A tab or a line break would end a field.
            for row in (columns, *rows):
                file.write("\t".join(" ".join(cell.split()) for cell in row) + "\n")


def manual(text: str, *examples: str) -> str:
    r"""Builds a command's help.

    Args:
        text: paragraphs, parted by empty lines; the first one is the summary. May hold rich's
            markup, so a literal `[` is written `\[`.
        examples: command lines, shown below each other under a heading.

    Returns:
        The text with the line breaks inside paragraphs removed: the terminal wraps them anew.
    """
    paragraphs = [" ".join(part.split()) for part in inspect.cleandoc(text).split("\n\n")]
    # \b tells typer to keep the lines of a paragraph.
    lines = ["\b", "[bold]Examples[/bold]", *(f"  {line}".replace("[", r"\[") for line in examples)]
    return "\n\n".join([*paragraphs, "\n".join(lines)])


def print_cards(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Prints a card for each row in a terminal; in a pipe the lines of `print_table`.

    A card is headed by the row's first cell; below it stand the other cells that are not empty,
    each beside its heading.
    """
    if not sys.stdout.isatty():
        print_table(columns, rows)
        return
    from rich.console import Console
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    console = Console()
    for head, *cells in rows:
        card = Table.grid(padding=(0, 2))
        for column, cell in zip(columns[1:], cells, strict=True):
            if cell:
                card.add_row(Text(column, style="dim"), Text(cell))
        console.print(Text(head, style="bold"))
        console.print(Padding(card, (0, 0, 0, 2)))
