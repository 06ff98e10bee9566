"""`use-st5 index`: makes an index for `use-st5 search`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from use_st5._imports import require
from use_st5.cli.embed import embedded
from use_st5.cli.files import ColumnOption, check_new, open_texts, writes_remote
from use_st5.cli.models import (
    DEFAULT_MODEL,
    BackendChoice,
    BackendOption,
    CountingEncoder,
    ModelChoice,
    ModelOption,
    PromptNameOption,
    PromptOption,
    load_encoder,
)
from use_st5.cli.output import manual, say, waiting
from use_st5.io.files import sole_writer

if TYPE_CHECKING:
    from use_st5.search.vector_index import Kind

HELP = manual(
    r"""Make an index for use-st5 search from the lines of a text, or from the texts of a table.

    The index is a folder with the vectors (scaled to length 1, unless the model was trained for dot
    products), the texts, and the name and hash of the model. A search with another model is
    refused. The folder appears when it is complete. The same command continues an interrupted
    embedding.

    --kind exact, the default, compares a query with every vector and finds the nearest texts.
    --kind hnsw builds a graph of near texts (extra search). The search time hardly grows with the
    number of texts, but the index is in memory, takes longer to build, and may miss a near text.

    If the model has a prompt for documents, it is put before each text. --prompt-name and --prompt
    choose another one.

    --vectors takes the vectors that use-st5 embed wrote for the same texts with the same model.
    Some texts are embedded again to check this.""",
    "use-st5 index sentences.txt --to sentences.index",
    "use-st5 index sentences.txt --to sentences.index --kind hnsw --model path/to/my_model",
    "use-st5 index sentences.txt --vectors vectors.npy --to sentences.index --overwrite",
)


class KindOption(StrEnum):
    """The kinds of index that `--kind` takes."""

    EXACT = "exact"
    HNSW = "hnsw"


def index(
    source: Annotated[
        str, typer.Argument(metavar="INPUT", help="A text file, or - for standard input.")
    ],
    to: Annotated[Path, typer.Option("--to", help="The folder to write.")],
    model: ModelOption = DEFAULT_MODEL,
    backend: BackendChoice = BackendOption.TENSORFLOW,
    prompt: PromptOption = None,
    prompt_name: PromptNameOption = None,
    kind: Annotated[
        KindOption, typer.Option("--kind", help="The kind of index.")
    ] = KindOption.EXACT,
    vectors: Annotated[
        Path | None, typer.Option("--vectors", help="A .npy file of use-st5 embed.")
    ] = None,
    batch_size: Annotated[
        int | None,
        typer.Option(min=1, help="Texts in one call of the model. Default: the model's own."),
    ] = None,
    column: ColumnOption = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the index if it exists.")
    ] = False,
) -> None:
    """Turns the lines of a text into an index."""
    from use_st5.encode.options import DOCUMENT
    from use_st5.search.vector_index import check_replaceable

    writes_remote(to, allowed=False)
    if not to.absolute().parent.is_dir():
        raise FileNotFoundError(
            f"{to.parent}: expected a folder to write to, found none. Make it first."
        )
    if to.exists() and to.samefile("."):
        raise ValueError(
            f"{to}: expected another folder than the current one, which would be replaced. Give "
            "the name of a new folder."
        )
    chosen: Kind = "hnsw" if kind is KindOption.HNSW else "exact"
    named = ModelChoice(model, backend, prompt, prompt_name)
    if chosen == "hnsw":
        require("faiss", "search")
    with sole_writer(to):
        check_replaceable(to)
        check_new(to, overwrite=overwrite)
        with open_texts(source, column=column) as lines:
            texts = list(lines)
        if not texts:
            raise ValueError(f"{source}: expected texts, one a line, received none")
        if vectors is not None:
            _build(texts, vectors, to, named, chosen)
            return
        # The vectors grow in `TO.vectors.npy.partial`. A file `TO.vectors.npy` is never written:
        # it may be the user's.
        options = {} if batch_size is None else {"batch_size": batch_size}
        place = to.with_name(f"{to.name}.vectors.npy")
        with sole_writer(place):
            job = embedded(texts, place, named, "npy", options, shown=to, usual=DOCUMENT)
            _build(texts, job.whole_file(), to, named, chosen)
            job.discard()


def _build(texts: list[str], vectors: Path, to: Path, model: ModelChoice, kind: Kind) -> None:
    import numpy as np

    from use_st5.search import VectorIndex

    try:
        rows = np.load(vectors, mmap_mode="r")
    except FileNotFoundError:
        raise
    except Exception as error:  # NumPy's header parser raises many kinds of errors.
        raise ValueError(f"{vectors}: expected a .npy file of vectors ({error})") from error
    encoder = CountingEncoder(load_encoder(model), model)
    with waiting(f"building {to}"):
        built = VectorIndex.build(to, rows, encoder=encoder, texts=texts, kind=kind)
    say(f"{to}: {len(built):,} texts, vectors of {built.dimension} by {built.model} ({kind})")
