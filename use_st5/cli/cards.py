"""Tables with much text in their cells, which no terminal is wide enough for."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from use_st5.cli.output import print_table


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
