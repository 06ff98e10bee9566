"""`use-st5 pairs`: makes training pairs of documents without questions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from use_st5.cli.files import sole_file
from use_st5.cli.output import check_table_name, manual, say, waiting, write_table

HELP = manual(
    """Make pairs of headings and passages from documents, for training and mining.

    FOLDER has Markdown (.md), HTML (.html) and plain text (.txt) files at any depth. The query is a
    heading, or the title if nothing stands between; the passage is the first text under it. Code,
    tables and navigation are left out. Needs the extra documents.

    The output, .tsv, .csv or .jsonl, has the columns anchor and positive. `use-st5 mine` adds hard
    negatives, and `use-st5 train` reads both.""",
    "use-st5 pairs handbook/ --to pairs.tsv",
    "use-st5 pairs site/ --to pairs.jsonl --per-heading 3 --max-words 120",
)


def pairs(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The documents.")],
    to: Annotated[Path, typer.Option("--to", help="The file to write.")],
    min_words: Annotated[int, typer.Option(min=1, help="Words of a passage at least.")] = 20,
    max_words: Annotated[int, typer.Option(min=1, help="Words of a passage at most.")] = 200,
    per_heading: Annotated[int, typer.Option(min=1, help="Passages of a heading at most.")] = 1,
) -> None:
    """Makes pairs of headings and passages from documents."""
    from use_st5.data.documents import document_pairs

    check_table_name(to)
    with sole_file(to), waiting(f"reading {folder}"):
        sizes = {"min_words": min_words, "max_words": max_words, "per_heading": per_heading}
        rows = [*document_pairs(folder, **sizes)]
        if not rows:
            raise ValueError(f"{folder}: found no passage of {min_words} words: lower --min-words.")
        write_table(to, ("anchor", "positive"), rows)
    say(f"{to}: {len(rows):,} pairs of {len({query for query, _ in rows}):,} headings")
