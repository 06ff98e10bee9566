"""`use-st5 search`, `index` and `rank`: find the texts that are nearest to a query."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from use_st5._imports import require
from use_st5.cli.embed import embedded
from use_st5.cli.files import STDIN, ColumnOption, check_new, open_texts, writes_remote
from use_st5.cli.models import (
    DEFAULT_MODEL,
    BackendChoice,
    BatchSizeOption,
    CountingEncoder,
    ModelChoice,
    ModelOption,
    OverwriteOption,
    PromptNameOption,
    PromptOption,
    load_cross_encoder,
    load_encoder,
    say_truncated,
)
from use_st5.cli.output import echo, manual, print_table, say, waiting
from use_st5.hub.model_names import bundled_names
from use_st5.io.files import sole_writer
from use_st5.io.progress import progress_lines

if TYPE_CHECKING:
    import numpy as np

    from use_st5.search.vector_index import Kind

Hit = tuple[float, int, str]  # score, line from 1, text
Found = tuple[str, int, list[list[Hit]]]  # name of the model, number of texts, hits of each query

HELP = manual(
    r"""Find the texts that are nearest to a query by cosine, or by the model's dot product.

    WHERE is an index of use-st5 index, a text file with one text a line, or a table whose --column
    has the texts. A file is embedded for each search. The queries are the arguments after WHERE, or
    the lines of a file (--file).

    The search uses the model of the index. If it is not a bundled model, give its folder with
    --model. Another model is refused.

    The model's prompts for queries and documents are put before the texts, if it has some;
    --prompt-name and --prompt choose another one for the queries.

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
        int | None, typer.Option(min=1, help="hnsw compares BREADTH × top-k texts. Default: 16.")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option("--model", "-m", help="Default: the index's; use_dan_en for a text file."),
    ] = None,
    backend: BackendChoice = "tensorflow",
    prompt: PromptOption = None,
    prompt_name: PromptNameOption = None,
    column: ColumnOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Finds the texts that are nearest to queries."""
    if bool(queries) == (file is not None):
        raise typer.BadParameter("expected either queries after WHERE or --file.")
    queries = queries or _texts(file or "", None)
    chosen = ModelChoice(model or "", backend, prompt, prompt_name)
    if Path(where).is_dir():
        if column is not None:
            raise typer.BadParameter("--column expects a table; WHERE is an index.")
        name, count, results = _in_index(where, queries, top_k, breadth, chosen)
    else:
        if breadth is not None:
            raise typer.BadParameter("--breadth expects an index; WHERE is a file.")
        name, count, results = _in_file(_texts(where, column), queries, top_k, chosen)
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


def _texts(source: str, column: str | None) -> list[str]:
    with open_texts(source, column=column) as lines:
        texts = list(lines)
    if not texts:
        raise ValueError(f"{source}: expected texts, one a line, received none")
    return texts


def _in_index(
    where: str, queries: Sequence[str], top_k: int, breadth: int | None, model: ModelChoice
) -> Found:
    from use_st5.search import VectorIndex

    index = VectorIndex(where)
    if breadth is not None and index.kind != "hnsw":
        raise typer.BadParameter("--breadth expects an index of --kind hnsw; WHERE is exact.")
    if not model.name and index.model not in bundled_names():
        raise ValueError(f"{where}: expected --model with the folder of {index.model}, its model")
    model = dataclasses.replace(model, name=model.name or index.model)
    encoder = CountingEncoder(load_encoder(model), model)
    with waiting(f"searching {len(index):,} texts"):
        scores, rows = index.search(encoder, queries, k=top_k, breadth=breadth)
    encoder.say_truncated()
    text = index.text if index.has_texts else lambda row: ""
    return encoder.name, len(index), _hits(scores, rows, text)


def _in_file(texts: list[str], queries: Sequence[str], top_k: int, model: ModelChoice) -> Found:
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
        [(s, row + 1, text(row)) for s, row in zip(*query, strict=True) if row >= 0]
        for query in zip(scores.tolist(), rows.tolist(), strict=True)
    ]


INDEX_HELP = manual(
    r"""Make an index for use-st5 search from the lines of a text, or from the texts of a table.

    The index is a folder with the vectors (scaled to length 1, unless the model was trained for dot
    products), the texts, and the name and hash of the model. The same command
    continues an interrupted embedding.

    --kind exact, the default, compares a query with every vector and finds the nearest texts.
    --kind hnsw builds a graph of near texts (extra search). The search time grows little with the
    number of texts, but the index is in memory, takes longer to build, and may miss a near text.

    If the model has a prompt for documents, it is put before each text. --prompt-name and --prompt
    choose another one.

    --vectors takes the vectors that use-st5 embed wrote for the same texts with the same model.
    Some texts are embedded again to check this.""",
    "use-st5 index sentences.txt --to sentences.index",
    "use-st5 index sentences.txt --to sentences.index --kind hnsw --model path/to/my_model",
    "use-st5 index sentences.txt --vectors vectors.npy --to sentences.index --overwrite",
)


def index(
    source: Annotated[
        str, typer.Argument(metavar="INPUT", help="A text file, or - for standard input.")
    ],
    to: Annotated[Path, typer.Option("--to", help="The folder to write.")],
    model: ModelOption = DEFAULT_MODEL,
    backend: BackendChoice = "tensorflow",
    prompt: PromptOption = None,
    prompt_name: PromptNameOption = None,
    kind: Annotated[Literal["exact", "hnsw"], typer.Option(help="The index.")] = "exact",
    vectors: Annotated[Path | None, typer.Option(help="A .npy file of use-st5 embed.")] = None,
    batch_size: BatchSizeOption = None,
    column: ColumnOption = None,
    overwrite: OverwriteOption = False,
) -> None:
    """Turns the lines of a text into an index."""
    from use_st5.encode.options import DOCUMENT
    from use_st5.search.vector_index import check_replaceable

    writes_remote(to, allowed=False)
    if not to.absolute().parent.is_dir():
        raise FileNotFoundError(f"{to.parent}: expected a folder to write to, found none")
    if to.exists() and to.samefile("."):
        raise ValueError(f"{to}: expected another folder than the current one")
    named = ModelChoice(model, backend, prompt, prompt_name)
    if kind == "hnsw":
        require("faiss", "search")
    with sole_writer(to):
        check_replaceable(to)
        check_new(to, overwrite=overwrite)
        texts = _texts(source, column)
        if vectors is not None:
            _build(texts, vectors, to, named, kind)
            return
        # The vectors grow in `TO.vectors.npy.partial`. A file `TO.vectors.npy` is never written:
        # it may be the user's.
        options = {} if batch_size is None else {"batch_size": batch_size}
        place = to.with_name(f"{to.name}.vectors.npy")
        with sole_writer(place):
            job = embedded(texts, place, named, "npy", options, shown=to, usual=DOCUMENT)
            _build(texts, job.whole_file(), to, named, kind)
            job.discard()


def _build(texts: list[str], vectors: Path, to: Path, model: ModelChoice, kind: Kind) -> None:
    import numpy as np

    from use_st5.search import VectorIndex

    try:
        rows = np.load(vectors, mmap_mode="r")
    except ValueError as error:
        raise ValueError(f"{vectors}: expected a .npy file of vectors ({error})") from error
    encoder = CountingEncoder(load_encoder(model), model)
    with waiting(f"building {to}"):
        built = VectorIndex.build(to, rows, encoder=encoder, texts=texts, kind=kind)
    say(f"{to}: {len(built):,} texts, vectors of {built.dimension} by {built.model} ({kind})")


RANK_HELP = manual(
    r"""Sort texts by their scores for a query, the best first.

    MODEL is a cross-encoder, which reads the query and a text together: a folder that use_st5
    exported, or a checkpoint of Hugging Face or sentence-transformers that classifies pairs and has
    one label (BERT, MPNet, RoBERTa, XLM-RoBERTa), such as those for MS MARCO or STS. It computes
    every pair separately, so use it for the few hundred texts that a search returned. If a pair is
    too long, its longer text is cut; standard error says how many pairs were cut.

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
    batch_size: Annotated[int, typer.Option(min=1, help="Pairs in a batch at most.")] = 128,
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
