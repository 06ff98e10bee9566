"""`use-st5 rank`: sorts texts by their scores for a query."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from use_st5.cli.files import STDIN, ColumnOption, open_texts
from use_st5.cli.models import load_cross_encoder, say_truncated
from use_st5.cli.output import echo, manual, print_table
from use_st5.io.progress import progress_lines

HELP = manual(
    r"""Sort texts by their scores for a query, the best first.

    MODEL is a cross-encoder, which reads the query and a text together: a folder that use_st5
    exported, or a checkpoint of Hugging Face or sentence-transformers that classifies pairs and has
    one label (BERT, MPNet, RoBERTa, XLM-RoBERTa), such as those for MS MARCO or STS. It computes
    every pair separately, so use it for the few hundred texts that a search returned, not for a
    whole corpus. If a pair is too long, its longer text is cut. Standard error says how many pairs
    were cut.

    The texts are the lines of files, or of standard input (-, or no file). Scores are from 0 to 1.
    Texts with equal scores keep their order. In a pipe the result is lines with tabs: score, place
    (FILE:LINE), text. --json prints one object.""",
    'use-st5 rank path/to/cross_encoder --query "How old are you?" answers.txt',
    'grep -i age *.txt | use-st5 rank path/to/cross_encoder -q "How old are you?" --top-k 10',
    'use-st5 rank path/to/cross_encoder -q "How old are you?" a.txt b.txt --json | jq .ranked[0]',
)


def rank(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="The folder of a cross-encoder.")],
    query: Annotated[str, typer.Option("--query", "-q", help="The query.")],
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FILE]...", help="Files of texts, one a line; - for stdin."),
    ] = None,
    top_k: Annotated[
        int | None, typer.Option("--top-k", "-k", min=1, help="How many to show. Default: all.")
    ] = None,
    batch_size: Annotated[
        int, typer.Option("--batch-size", min=1, help="Pairs in a batch at most.")
    ] = 128,
    column: ColumnOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Ranks texts."""
    texts: list[str] = []
    places: list[tuple[str, int]] = []  # The file of a text, and its line or row.
    for file in files or [STDIN]:
        with open_texts(file, column=column) as lines:
            for number, text in enumerate(lines, start=1):
                places.append((file, number))
                texts.append(text)
    if not texts:
        raise ValueError("expected texts to rank, one a line, received none")
    cross_encoder = load_cross_encoder(model)
    with progress_lines(lambda: f"ranking {len(texts):,} texts"):
        cut = cross_encoder.truncated([(query, text) for text in texts])
        ranked = cross_encoder.rank(query, texts, top_k=top_k, batch_size=batch_size)
    say_truncated(cross_encoder, len(cut), len(texts), what="pairs of the query and a text")
    if as_json:
        rows = [
            {"score": hit.score, "file": file, "line": line, "text": hit.text}
            for hit in ranked
            for file, line in [places[hit.place]]
        ]
        result = {"model": cross_encoder.name, "query": query, "texts": len(texts), "ranked": rows}
        echo(json.dumps(result, ensure_ascii=False))
        return
    cells = [(f"{hit.score:.4f}", "{}:{}".format(*places[hit.place]), hit.text) for hit in ranked]
    print_table(["score", "place", "text"], cells)
