"""`use-st5 search`, `index` and `rank`: find the texts that are nearest to a query."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from use_st5._imports import require
from use_st5.cli.embed import embedded
from use_st5.cli.files import STDIN, ColumnOption, check_new, read_rows, writes_remote
from use_st5.cli.models import (
    DEFAULT_MODEL,
    BackendChoice,
    BatchSizeOption,
    CountingEncoder,
    ModelChoice,
    OverwriteOption,
    PromptNameOption,
    PromptOption,
    QuickBackendChoice,
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
    import pyarrow as pa

    from use_st5.search import VectorIndex

Hit = tuple[float, int, str, dict[str, Any]]  # score, line from 1, text, fields
Found = tuple[str, int, list[list[Hit]]]  # name of the model, number of texts, hits of each query

HELP = manual(
    r"""Find the texts that are nearest to a query by cosine or dot product.

    An index has its metric; for a file it is that of the model, or --metric.

    WHERE is an index of use-st5 index, a text file with one text a line, or a table whose --column
    has the texts. A file is embedded for each search. The queries are the arguments after WHERE, or
    the lines of a file (--file).

    The search uses the model of the index. If it is not a bundled model, give its folder with
    --model. Another model is refused.

    The model's prompts for queries and documents are put before the texts, if it has some;
    --prompt-name and --prompt choose another one for the queries.

    An index of a table has its other columns as fields. --where searches only the rows for which an
    expression is true: comparisons of a field with a value (==, !=, <, <=, >, >=, in, not in, is
    None), joined by and, or, not. --hybrid joins two rankings, by the vectors and by the words
    (BM25); the score is then the sum of 1 / (60 + rank) in both.

    The result has the score, the line of the text (from 1; of a table, the row), the id if there is
    one, the --fields and the text; with several queries also the query. In a pipe it is lines with
    tabs. --json prints one object with all fields. use-st5 rank sorts the found texts again with a
    cross-encoder.""",
    'use-st5 search sentences.index "How old are you?"',
    'use-st5 search sentences.txt "How old are you?" "Where is the station?" --top-k 3',
    "use-st5 search sentences.index --file questions.txt --json | jq .queries[0]",
    "use-st5 search laws.index 'Who may vote?' --where 'year >= 1990' --hybrid",
)

MetricOption = Annotated[
    Literal["cosine", "dot"] | None, typer.Option("--metric", help="Default: the model's.")
]
FieldsOption = Annotated[
    str | None,
    typer.Option("--fields", help="Fields to print besides the id, such as domain,year."),
]


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
        typer.Option(min=1, help="hnsw (16) and binary (4) compare BREADTH × top-k vectors."),
    ] = None,
    condition: Annotated[
        str | None, typer.Option("--where", metavar="EXPRESSION", help="Search only these rows.")
    ] = None,
    hybrid: Annotated[bool, typer.Option("--hybrid", help="Search by the words too.")] = False,
    fields: FieldsOption = None,
    model: Annotated[
        str | None,
        typer.Option("--model", "-m", help="Default: the index's; use_dan_en for a text file."),
    ] = None,
    backend: QuickBackendChoice = None,
    prompt: PromptOption = None,
    prompt_name: PromptNameOption = None,
    column: ColumnOption = None,
    metric: MetricOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Finds the texts that are nearest to queries."""
    if bool(queries) == (file is not None):
        raise typer.BadParameter("expected either queries after WHERE or --file.")
    queries = queries or _texts(file or "")
    chosen = ModelChoice(model or "", backend, prompt, prompt_name)
    if Path(where).is_dir():
        if column is not None or metric is not None:
            option = "--metric" if column is None else "--column"
            raise typer.BadParameter(f"{option} expects a table; WHERE is an index.")
        options = {"k": top_k, "breadth": breadth, "where": condition, "hybrid": hybrid}
        name, count, results = _in_index(where, queries, chosen, options)
    else:
        given = {"--breadth": breadth, "--where": condition, "--hybrid": hybrid or None}
        if wrong := [option for option, value in given.items() if value is not None]:
            raise typer.BadParameter(f"{wrong[0]} expects an index; WHERE is a file.")
        name, count, results = _in_file(where, column, queries, top_k, chosen, metric)
    if as_json:
        rows = [
            {
                "query": query,
                "found": [
                    {"score": score, "line": line, "text": text, **({"fields": row} if row else {})}
                    for score, line, text, row in hits
                ],
            }
            for query, hits in zip(queries, results, strict=True)
        ]
        answer = {"model": name, "texts": count, "queries": rows}
        echo(json.dumps(answer, ensure_ascii=False, default=str))
        return
    several = len(queries) > 1
    shown = _shown(fields, [row for hits in results for *_, row in hits])
    cells = [
        (*([query] if several else []), f"{score:.4f}", str(line), *_cells(row, shown), text)
        for query, hits in zip(queries, results, strict=True)
        for score, line, text, row in hits
    ]
    print_table([*(["query"] if several else []), "score", "line", *shown, "text"], cells)


def _shown(wanted: str | None, rows: Sequence[dict[str, Any]]) -> list[str]:
    """The fields to print: the id, and those of `--fields`."""
    names = dict.fromkeys(name for row in rows for name in row)
    shown = [name for name in names if name.casefold() in ("id", "_id")][:1]
    for name in (wanted or "").split(","):
        if name.strip() and rows and name.strip() not in names:
            raise typer.BadParameter(f"--fields: expected some of {[*names]}, received {name!r}.")
        shown += [name.strip()] if name.strip() and name.strip() not in shown else []
    return shown


def _cells(row: dict[str, Any], shown: Sequence[str]) -> list[str]:
    return ["" if row.get(name) is None else str(row[name]) for name in shown]


def _texts(source: str) -> list[str]:
    return _rows(source, None)[0]


def _rows(source: str, column: str | None) -> tuple[list[str], pa.Table | None]:
    texts, fields = read_rows(source, column)
    if not texts:
        raise ValueError(f"{source}: expected texts, one a line, received none")
    return texts, fields


def _in_index(
    where: str, queries: Sequence[str], model: ModelChoice, options: dict[str, Any]
) -> Found:
    from use_st5.search import VectorIndex

    index = VectorIndex(where)
    if options["breadth"] is not None and index.kind == "exact":
        raise typer.BadParameter("--breadth expects an index of --kind hnsw or binary.")
    model = _model_of(index, model)
    encoder = CountingEncoder(load_encoder(model), model)
    with waiting(f"searching {len(index):,} texts"):
        scores, rows = index.search(encoder, queries, **options)
    encoder.say_truncated()
    text = index.text if index.has_texts else lambda row: ""
    return encoder.name, len(index), _hits(scores, rows, text, index.field_values)


def _model_of(index: VectorIndex, model: ModelChoice) -> ModelChoice:
    """The model of an index, which must be named unless it is a bundled one."""
    if not model.name and index.model not in bundled_names():
        where = f"expected --model with the folder of {index.model}, its model"
        raise ValueError(f"{index.folder}: {where}")
    return dataclasses.replace(model, name=model.name or index.model)


def _in_file(
    where: str,
    column: str | None,
    queries: Sequence[str],
    top_k: int,
    model: ModelChoice,
    metric: str | None,
) -> Found:
    texts, fields = _rows(where, column)
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
        if (metric or loaded.similarity_fn_name) == "cosine":
            corpus, query_vectors = unit_rows(corpus), unit_rows(query_vectors)
        scores, rows = exact_search(query_vectors, corpus, k=min(top_k, len(texts)))
    encoder.say_truncated()

    def values(row: int) -> dict[str, Any]:
        return {} if fields is None else fields.slice(row, 1).to_pylist()[0]

    return encoder.name, len(texts), _hits(scores, rows, texts.__getitem__, values)


def _hits(
    scores: np.ndarray,
    rows: np.ndarray,
    text: Callable[[int], str],
    fields: Callable[[int], dict[str, Any]],
) -> list[list[Hit]]:
    """The hits of each query; a graph may find fewer hits than the query wants."""
    return [
        [(s, row + 1, text(row), fields(row)) for s, row in zip(*query, strict=True) if row >= 0]
        for query in zip(scores.tolist(), rows.tolist(), strict=True)
    ]


INDEX_HELP = manual(
    r"""Make an index for use-st5 search from the lines of a text, or from the texts of a table.

    The index is a folder with the vectors (scaled to length 1, unless --metric is dot or the model
    was trained for dot products), the texts, and the name and hash of the model. The same command
    continues an interrupted embedding.

    --kind exact, the default, compares a query with every vector and finds the nearest texts.
    --kind binary compares the signs of the numbers, then the vectors of the best; the signs are in
    memory, and it may miss a near text.
    --kind hnsw builds a graph of near texts (extra search). The search time grows little with the
    number of texts, but the index is in memory, takes longer to build, and may miss a near text.

    If the model has a prompt for documents, it is put before each text. --prompt-name and --prompt
    choose another one.

    A model reads a text up to its limit. With --windows, a longer text has a vector for each of its
    overlapping windows, and search finds it by the best one; --add and --update then do the same.

    --vectors takes the vectors that use-st5 embed wrote for the same texts with the same model.
    Some texts are embedded again to check this.

    The other columns of a table are kept as fields, for search --where. A column named id or _id
    names the rows. --add appends the texts of INPUT to an index; a known id is an error. --update
    does the same, and first removes the rows with these ids. --remove removes the rows for which an
    expression is true, and the lines after them move up. If the command is killed, the old index or
    the new one is there.""",
    "use-st5 index sentences.txt --to sentences.index",
    "use-st5 index sentences.txt --to sentences.index --kind hnsw --model path/to/my_model",
    "use-st5 index sentences.txt --vectors vectors.npy --to sentences.index --overwrite",
    "use-st5 index laws.csv --column text --to laws.index",
    "use-st5 index new_laws.csv --column text --to laws.index --update",
    'use-st5 index --to laws.index --remove \'id in ["12", "13"] or year < 1900\'',
)


def index(
    to: Annotated[Path, typer.Option("--to", help="The folder to write.")],
    source: Annotated[
        str | None,
        typer.Argument(metavar="INPUT", help="A text file or table, or - for standard input."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option("--model", "-m", help=f"Default: {DEFAULT_MODEL}; with --add the index's."),
    ] = None,
    backend: BackendChoice = "tensorflow",
    prompt: PromptOption = None,
    prompt_name: PromptNameOption = None,
    kind: Annotated[Literal["exact", "hnsw", "binary"], typer.Option(help="The index.")] = "exact",
    metric: MetricOption = None,
    vectors: Annotated[Path | None, typer.Option(help="A .npy file of use-st5 embed.")] = None,
    windows: Annotated[
        bool, typer.Option("--windows", help="Store a vector for each window of a long text.")
    ] = False,
    batch_size: BatchSizeOption = None,
    column: ColumnOption = None,
    overwrite: OverwriteOption = False,
    add: Annotated[bool, typer.Option("--add", help="Add the texts to the index.")] = False,
    update: Annotated[
        bool, typer.Option("--update", help="The same; rows with the same ids are replaced.")
    ] = False,
    remove: Annotated[
        str | None,
        typer.Option(metavar="EXPRESSION", help="Remove these rows of the index; without INPUT."),
    ] = None,
) -> None:
    """Turns the lines of a text into an index, or changes an index."""
    from use_st5.encode.options import DOCUMENT
    from use_st5.search import VectorIndex
    from use_st5.search.vector_index import check_replaceable

    writes_remote(to, allowed=False)
    if not to.absolute().parent.is_dir():
        raise FileNotFoundError(f"{to.parent}: expected a folder to write to, found none")
    if to.exists() and to.samefile("."):
        raise ValueError(f"{to}: expected another folder than the current one")
    if (
        (source is None) != (remove is not None)
        or (add or update or remove)
        and (overwrite or metric or windows)
    ):
        new = "--overwrite, --metric, --windows for new ones"
        raise typer.BadParameter(f"expected INPUT or --remove; {new}.")
    if remove is not None:
        changed = VectorIndex(to)
        with waiting(f"changing {to}"):
            count = changed.remove(where=remove)
        say(f"{to}: {count:,} texts removed, {len(changed):,} left")
        return
    named = ModelChoice(model or "", backend, prompt, prompt_name)
    if kind == "hnsw":
        require("faiss", "search")
    with sole_writer(to):
        old = VectorIndex(to) if add or update else None
        if old is not None:
            named = _model_of(old, named)
        else:
            named = dataclasses.replace(named, name=named.name or DEFAULT_MODEL)
            check_replaceable(to)
            check_new(to, overwrite=overwrite)
        texts, fields = _rows(source or "", column)
        has_windows = windows if old is None else old.has_windows
        pieces, owners, embeds = _pieces(texts, named, has_windows, vectors)

        def write(vectors: Path) -> None:
            encoder = CountingEncoder(load_encoder(named), named)
            rows: dict[str, Any] = {"texts": texts, "encoder": encoder, "fields": fields}
            rows["windows"] = owners
            with waiting(f"building {to}"):
                if old is not None:
                    old.add(vectors=_vectors(vectors), replace=update, **rows)
                built = old or VectorIndex.build(
                    to, _vectors(vectors), kind=kind, metric=metric, **rows
                )
            about = f"vectors of {built.dimension} by {built.model} ({built.kind})"
            say(f"{to}: {len(built):,} texts, {about}")

        if vectors is not None:
            write(vectors)
            return
        # The vectors grow in `TO.vectors.npy.partial`. A file `TO.vectors.npy` is never written:
        # it may be the user's.
        options = {} if batch_size is None else {"batch_size": batch_size}
        place = to.with_name(f"{to.name}.vectors.npy")
        with sole_writer(place):
            job = embedded(pieces, place, embeds, "npy", options, shown=to, usual=DOCUMENT)
            write(job.whole_file())
            job.discard()


def _pieces(
    texts: list[str], model: ModelChoice, has_windows: bool, vectors: Path | None
) -> tuple[list[str], np.ndarray | None, ModelChoice]:
    """What is embedded of the texts, the row of each window, and the model to embed it."""
    if not has_windows:
        return texts, None, model
    if vectors is not None:
        raise typer.BadParameter("--vectors expects an index without --windows.")
    windows, owners = CountingEncoder(load_encoder(model), model).document_windows(texts)
    return windows, owners, dataclasses.replace(model, prompt="", prompt_name=None)


def _vectors(path: Path) -> np.ndarray:
    import numpy as np

    try:
        return np.load(path, mmap_mode="r")
    except ValueError as error:
        raise ValueError(f"{path}: expected a .npy file of vectors ({error})") from error


RANK_HELP = manual(
    r"""Sort texts by their scores for a query, the best first.

    MODEL is a cross-encoder, which reads the query and a text together: a folder that use_st5
    exported, or a checkpoint of Hugging Face or sentence-transformers that classifies pairs and has
    one label (BERT, MPNet, RoBERTa, XLM-RoBERTa), such as those for MS MARCO or STS. It computes
    every pair separately, so use it for the few hundred texts that a search returned. If a pair is
    too long, its longer text is cut; standard error says how many pairs were cut.

    The texts are the lines of files, or of standard input (-, or no file). Scores are from 0 to 1.
    Texts with equal scores keep their order. In a pipe the result is lines with tabs: score, place
    (FILE:LINE), text. --json prints one object. With --column the input is a table, such as what
    use-st5 search writes in a pipe, and its id and --fields are printed too.""",
    'use-st5 rank path/to/cross_encoder --query "How old are you?" answers.txt',
    'grep -i age *.txt | use-st5 rank path/to/cross_encoder -q "How old are you?" --top-k 10',
    'use-st5 rank path/to/cross_encoder -q "How old are you?" a.txt b.txt --json | jq .ranked[0]',
    'use-st5 search laws.index "$Q" | use-st5 rank path/to/cross_encoder -q "$Q" --column text',
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
    fields: FieldsOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Ranks texts."""
    texts: list[str] = []
    places: list[tuple[str, int, dict[str, Any]]] = []  # The file, the line or row, and the fields.
    for file in files or [STDIN]:
        lines, table = read_rows(file, column)
        values = [{}] * len(lines) if table is None or not table.num_columns else table.to_pylist()
        places += [(file, number, row) for number, row in enumerate(values, start=1)]
        texts += lines
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
            | ({"fields": row} if row else {})
            for hit in ranked
            for file, line, row in [places[hit.place]]
        ]
        result = {"model": cross_encoder.name, "query": query, "texts": len(texts), "ranked": rows}
        echo(json.dumps(result, ensure_ascii=False, default=str))
        return
    shown = _shown(fields, [row for *_, row in places])
    cells = [
        (f"{hit.score:.4f}", f"{file}:{line}", *_cells(row, shown), hit.text)
        for hit in ranked
        for file, line, row in [places[hit.place]]
    ]
    print_table(["score", "place", *shown, "text"], cells)
