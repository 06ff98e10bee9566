"""`use-st5 index`: texts to a folder that `use-st5 search` searches."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from use_st5._cli.destination import check_new
from use_st5._cli.elsewhere import goes_elsewhere
from use_st5._cli.embed import embedded
from use_st5._cli.lines import open_seekable, read_lines
from use_st5._cli.models import DEFAULT_MODEL, CountingEncoder, ModelOption, load_encoder
from use_st5._cli.output import manual, say, waiting
from use_st5._files import sole_writer
from use_st5._imports import require

if TYPE_CHECKING:
    import numpy as np

HELP = manual(
    r"""Turn texts, one a line, into an index that use-st5 search searches.

    The index is a folder with the vectors, scaled to length 1, the texts, and the name and the hash
    of the model: a search with another model is refused. It is written whole or not at all, and
    the embedding of many texts goes on where it stopped when the same command is given again.

    --kind says how it is searched. exact, the default, compares with every vector and finds the
    true nearest. int8 and binary look through codes of one byte or one bit a number first (a
    quarter and a 32nd of the bytes) and score what they find with the vectors. hnsw is a graph of
    near texts (extra search), whose search hardly grows with the texts; it is in memory, and takes
    the longest to build.

    --vectors takes what use-st5 embed has made of the same texts with the same model, and spares
    the embedding; some of the texts are embedded again to see that it is so.""",
    "use-st5 index sentences.txt --to sentences.index",
    "use-st5 index sentences.txt --to sentences.index --kind int8 --model path/to/my_model",
    "use-st5 index sentences.txt --vectors vectors.npy --to sentences.index --overwrite",
)


class KindOption(StrEnum):
    """The kinds that `--kind` takes."""

    EXACT = "exact"
    INT8 = "int8"
    BINARY = "binary"
    HNSW = "hnsw"


def index(
    source: Annotated[
        str, typer.Argument(metavar="INPUT", help="A text file, or - for standard input.")
    ],
    to: Annotated[Path, typer.Option("--to", help="The folder to write.")],
    model: ModelOption = DEFAULT_MODEL,
    kind: Annotated[
        KindOption, typer.Option("--kind", help="How it is searched.")
    ] = KindOption.EXACT,
    vectors: Annotated[
        Path | None, typer.Option("--vectors", help="A .npy of use-st5 embed.")
    ] = None,
    batch_size: Annotated[
        int | None,
        typer.Option(min=1, help="Texts in one call of the model. Default: the model's own."),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the index if it exists.")
    ] = False,
) -> None:
    """Turns the lines of a text into an index."""
    from use_st5.search.index_files import check_replaceable

    goes_elsewhere(to, allowed=False)
    if not to.absolute().parent.is_dir():
        raise FileNotFoundError(f"expected a folder to write to, found no {to.parent}")
    if kind is KindOption.HNSW:
        require("faiss", "search")
    with sole_writer(to):
        check_replaceable(to)
        check_new(to, overwrite=overwrite)
        with open_seekable(source, beside=to.absolute()) as stream:
            texts = list(read_lines(stream, source=source))
            if not texts:
                raise ValueError(f"{source}: expected texts, one a line, received none")
            if vectors is not None:
                _build(texts, vectors, to, model, kind)
                return
            stream.seek(0)
            _embed_and_build(stream, source, texts, to, model, kind, batch_size)


def _embed_and_build(
    stream: IO[bytes],
    source: str,
    texts: list[str],
    to: Path,
    model: str,
    kind: KindOption,
    batch_size: int | None,
) -> None:
    """Builds the index from vectors that grow in `TO.vectors.npy.partial`.

    A file `TO.vectors.npy` is never written: it may be the user's.
    """
    options = {} if batch_size is None else {"batch_size": batch_size}
    place = to.with_name(f"{to.name}.vectors.npy")
    with sole_writer(place):
        job = embedded(stream, source, place, model, "npy", options, shown=to)
        _build(texts, job.whole_file(), to, model, kind)
        job.discard()


def _build(texts: list[str], vectors: Path, to: Path, model: str, kind: KindOption) -> None:
    from use_st5.search import VectorIndex

    rows = _mapped(vectors)
    encoder = CountingEncoder(load_encoder(model))
    with waiting(f"building {to}"):
        built = VectorIndex.build(to, rows, encoder=encoder, texts=texts, kind=kind.value)
    say(f"{to}: {len(built):,} texts, vectors of {built.dimension} by {built.model} ({kind.value})")


def _mapped(path: Path) -> np.ndarray:
    """The array of a .npy file, of which a block at a time will be read."""
    import numpy as np

    if not path.is_file():
        raise FileNotFoundError(f"expected a .npy file of vectors, found no {path}")
    try:
        return np.load(path, mmap_mode="r")
    except Exception as error:  # NumPy's parser of headers raises what it stumbles over
        raise ValueError(f"{path}: expected a .npy file of vectors ({error})") from error
