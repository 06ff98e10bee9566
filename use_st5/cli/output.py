"""Shared output of the commands: help texts, tables for people, tab-separated lines in a pipe."""

from __future__ import annotations

import csv
import inspect
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import typer

from use_st5.io.files import atomic_path
from use_st5.io.progress import waiting as waiting
from use_st5.io.progress import without_controls

_TABLES = (".tsv", ".csv", ".jsonl")


def say(message: str) -> None:
    """Writes one line to standard error; standard output is for the results."""
    echo(message, err=True)


def echo(text: str, *, err: bool = False) -> None:
    """Writes a text and a line feed: to a terminal without control characters, else as it is."""
    stream = sys.stderr if err else sys.stdout
    typer.echo(without_controls(text) if stream.isatty() else text, err=err)


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, title: str = "") -> None:
    """Prints a table: drawn in a terminal, tab-separated (with a header line) in a pipe.

    In a pipe, tabs and line breaks inside a cell become spaces, and the title is left out.
    """
    if not sys.stdout.isatty():
        for row in [columns, *rows]:
            echo("\t".join(" ".join(cell.split()) for cell in row))
        return
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    if title:
        Console().print(Text(without_controls(title), style="italic"))
    columns, *rows = [[without_controls(cell) for cell in row] for row in (columns, *rows)]
    table = Table(box=SIMPLE_HEAD, show_edge=False, collapse_padding=True, pad_edge=False)
    for place, column in enumerate(columns):
        cells = [row[place] for row in rows]
        is_number = all(map(_NUMBER.fullmatch, cells))
        # Names and numbers stay whole, texts are folded.
        is_text = any(" " in cell or len(cell) > _LONGEST_NAME for cell in cells)
        justify: Literal["right", "left"] = "right" if is_number else "left"
        table.add_column(Text(column), justify=justify, overflow="fold", no_wrap=not is_text)
    for row in rows:
        table.add_row(*map(Text, row))
    Console().print(table)


# A number, with its unit.
_NUMBER = re.compile(r"[-+−]?[\d.,]+( [kMG]?B)?|[-–]|")
_LONGEST_NAME = 36


def check_table_name(path: Path) -> None:
    """Refuses a file to write whose suffix is not that of a table."""
    if path.suffix.lower() not in _TABLES:
        raise typer.BadParameter(f"--to ends in {', '.join(_TABLES)}, received {path}.")


def write_table(path: Path, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Writes a table that `use-st5 train` can read; the suffix determines the format."""
    with atomic_path(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        if path.suffix.lower() == ".jsonl":
            for row in rows:
                named = dict(zip(columns, row, strict=True))
                file.write(json.dumps(named, ensure_ascii=False) + "\n")
        elif path.suffix.lower() == ".csv":
            # Python's writer quotes no field for a lone carriage return, which would end the row.
            clean_rows = ([re.sub(r"\r\n?", "\n", cell) for cell in row] for row in rows)
            csv.writer(file, lineterminator="\n").writerows([columns, *clean_rows])
        else:  # A tab or a line break would end a field.
            for row in (columns, *rows):
                file.write("\t".join(" ".join(cell.split()) for cell in row) + "\n")


def manual(text: str, *examples: str) -> str:
    r"""Builds a command's help of paragraphs, and of command lines as examples.

    The text may contain rich's markup, so a literal `[` is written `\[`. Line breaks inside
    paragraphs are removed; the terminal wraps the lines again.
    """
    paragraphs = [" ".join(part.split()) for part in inspect.cleandoc(text).split("\n\n")]
    # \b tells typer to keep the lines of a paragraph.
    lines = ["\b", "[bold]Examples[/bold]", *(f"  {line}".replace("[", r"\[") for line in examples)]
    return "\n\n".join([*paragraphs, "\n".join(lines)])


def print_cards(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Prints a card for each row in a terminal, under its first cell; in a pipe a table."""
    if not sys.stdout.isatty():
        print_table(columns, rows)
        return
    width = max(map(len, columns[1:]))
    for head, *cells in rows:
        echo(head)
        for column, cell in zip(columns[1:], cells, strict=True):
            if cell:
                echo(f"  {column:{width}}  {cell}")
