"""`use-st5 search`: finds the texts that are nearest to a query."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from use_st5.cli.files import ColumnOption, open_texts
from use_st5.cli.models import (
    DEFAULT_MODEL,
    BackendChoice,
    BackendOption,
    CountingEncoder,
    ModelChoice,
    PromptNameOption,
    PromptOption,
    load_encoder,
)
from use_st5.cli.output import echo, manual, print_table, waiting
from use_st5.hub.model_names import bundled_names

if TYPE_CHECKING:
    import numpy as np

HELP = manual(
    r"""Find the texts that are nearest to a query by cosine, or by the model's dot product.

    WHERE is an index of use-st5 index, a text file with one text a line, or a table whose --column
    has the texts. A file is embedded for each search. The queries are the arguments after WHERE, or
    the lines of a file (--file).

    The search uses the model of the index. If it is not a bundled model, give its folder with
    --model. Another model is refused.

    If the model has prompts for queries and documents, they are put before the texts. --prompt-name
    and --prompt choose another one for the queries.

    The result has the score, the line of the text (from 1) and the text; with several queries also
    the query. In a pipe it is lines with tabs. --json prints one object. use-st5 rank sorts the
    found texts again with a cross-encoder.""",
    'use-st5 search sentences.index "How old are you?"',
    'use-st5 search sentences.txt "How old are you?" "Where is the station?" --top-k 3',
    "use-st5 search sentences.index --file questions.txt --json | jq .queries[0]",
)


def search(
    where: Annotated[str, typer.Argument(metavar="WHERE", help="An index, or a text file.")],
    queries: Annotated[
        list[str] | None, typer.Argument(metavar="[QUERY]...", help="Texts to search for.")
    ] = None,
    file: Annotated[
        str | None, typer.Option("--file", "-f", help="A file of queries, one a line; - for stdin.")
    ] = None,
    top_k: Annotated[
        int, typer.Option("--top-k", "-k", min=1, help="How many texts to find for each query.")
    ] = 10,
    breadth: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="An index of --kind hnsw compares BREADTH × top-k texts. Default: 16.",
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option("--model", "-m", help="Default: the index's; use_dan_en for a text file."),
    ] = None,
    backend: BackendChoice = BackendOption.TENSORFLOW,
    prompt: PromptOption = None,
    prompt_name: PromptNameOption = None,
    column: ColumnOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Finds the texts that are nearest to queries."""
    if bool(queries) == (file is not None):
        raise typer.BadParameter("expected either queries after WHERE or --file.")
    if file is not None:
        with open_texts(file) as lines:
            queries = list(lines)
    if not queries:
        raise ValueError(f"{file}: expected queries, one a line, received none")
    chosen = ModelChoice(model or "", backend, prompt, prompt_name)
    if not Path(where).is_dir():
        name, count, results = _in_file(where, column, queries, top_k, breadth, chosen)
    elif column is not None:
        raise typer.BadParameter("expected a table; WHERE is an index.", param_hint="--column")
    else:
        name, count, results = _in_index(where, queries, top_k, breadth, chosen)
    if as_json:
        rows = [
            {
                "query": query,
                "found": [{"score": s, "line": n, "text": text} for s, n, text in hits],
            }
            for query, hits in zip(queries, results, strict=True)
        ]
        answer = {"model": name, "texts": count, "queries": rows}
        echo(json.dumps(answer, ensure_ascii=False))
        return
    several = len(queries) > 1
    cells = [
        (*([query] if several else []), f"{score:.4f}", str(line), text)
        for query, hits in zip(queries, results, strict=True)
        for score, line, text in hits
    ]
    print_table([*(["query"] if several else []), "score", "line", "text"], cells)


Hit = tuple[float, int, str]  # score, line from 1, text
Found = tuple[str, int, list[list[Hit]]]  # name of the model, number of texts, hits of each query


def _in_index(
    where: str,
    queries: Sequence[str],
    top_k: int,
    breadth: int | None,
    model: ModelChoice,
) -> Found:
    from use_st5.search import VectorIndex

    index = VectorIndex(where)
    if breadth is not None and index.kind != "hnsw":
        raise typer.BadParameter(
            f"expected an index of --kind hnsw, received one of the kind {index.kind}, which "
            "compares every text. Leave it out.",
            param_hint="--breadth",
        )
    if not model.name and index.model not in bundled_names():
        raise ValueError(
            f"{where}: expected --model with the folder of {index.model}, the model of this index; "
            "it is not a bundled model"
        )
    model = dataclasses.replace(model, name=model.name or index.model)
    encoder = CountingEncoder(load_encoder(model), model)
    with waiting(f"searching {len(index):,} texts"):
        scores, rows = index.search(encoder, queries, k=top_k, breadth=breadth)
    encoder.say_truncated()

    def text(row: int) -> str:
        return index.text(row) if index.has_texts else ""

    return encoder.name, len(index), _hits(scores, rows, text)


def _in_file(
    where: str,
    column: str | None,
    queries: Sequence[str],
    top_k: int,
    breadth: int | None,
    model: ModelChoice,
) -> Found:
    if breadth is not None:
        raise typer.BadParameter("expected an index; WHERE is a file.", param_hint="--breadth")
    with open_texts(where, column=column) as lines:
        texts = list(lines)
    if not texts:
        raise ValueError(f"{where}: expected texts, one a line, received none")
    model = dataclasses.replace(model, name=model.name or DEFAULT_MODEL)
    loaded = load_encoder(model)
    from use_st5.encode.options import DOCUMENT
    from use_st5.encode.similarity import unit_rows
    from use_st5.search import exact_search

    encoder = CountingEncoder(loaded, model)
    of_documents = ModelChoice(model.name).prompt_of(loaded, DOCUMENT)
    with waiting(f"searching {len(texts):,} texts"):
        corpus = encoder.encode(texts, prompt=of_documents)
        query_vectors = encoder.encode_query(list(queries))
        if loaded.similarity_fn_name == "cosine":
            corpus, query_vectors = unit_rows(corpus), unit_rows(query_vectors)
        scores, rows = exact_search(query_vectors, corpus, k=min(top_k, len(texts)))
    encoder.say_truncated()
    return encoder.name, len(texts), _hits(scores, rows, texts.__getitem__)


def _hits(scores: np.ndarray, rows: np.ndarray, text: Callable[[int], str]) -> list[list[Hit]]:
    """The hits of each query; a graph may find fewer hits than the query wants."""
    return [
        [(s, row + 1, text(row)) for s, row in zip(*each, strict=True) if row >= 0]
        for each in zip(scores.tolist(), rows.tolist(), strict=True)
    ]
