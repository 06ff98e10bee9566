"""`use-st5 convert`: a Sentence-T5 out of a foreign checkpoint."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from use_st5._cli.destination import sole_model
from use_st5._cli.models import start_tensorflow
from use_st5._cli.output import manual, say, waiting
from use_st5._imports import require

if TYPE_CHECKING:
    from use_st5.convert.checkpoint_kind import CheckpointKind
    from use_st5.models.t5.sentence_t5 import SentenceT5
    from use_st5.text.sentencepiece_vectorizer import SentencePieceVectorizer

HELP = manual(
    """Turn a T5 checkpoint into a sentence encoder that takes strings.

    SOURCE is one of these, found out by itself: a folder of sentence-transformers (modules.json;
    sentence-t5-base and the like); a folder of Hugging Face with a T5, T5 1.1 or mT5 (config.json),
    stored as safetensors in one file or in shards; a T5X checkpoint, a folder checkpoint_N or one
    file, of a T5 or of a dual encoder; a TensorFlow checkpoint (model.ckpt-N) of Mesh TensorFlow,
    T5's first release, or of the Model Garden.

    Of a plain T5 the raw encoder of the Sentence-T5 paper is made: --pooling mean, first or
    decoder, without projection. T5X and TensorFlow checkpoints hold no configuration, which their
    tensors' shapes give, and no vocabulary: --vocabulary names it, and T5's own is taken where the
    table has its 32,128 rows.

    Nothing in a checkpoint is run; files that hold code (.bin, .pt) are refused. Every name and
    shape is checked before a tensor is read, and one tensor is in memory at a time.""",
    "use-st5 convert sentence-t5-base --to models/sentence_t5_base",
    "use-st5 convert t5-large --to models/t5_large_raw --pooling decoder",
    "use-st5 convert sentence-t5-xxl --to models/sentence_t5_xxl --dtype bfloat16",
    "use-st5 convert mt5_base/checkpoint_1000000 --to models/mt5 --vocabulary mc4.model",
)


class PoolingOption(StrEnum):
    """The poolings that `--pooling` takes."""

    MEAN = "mean"
    FIRST = "first"
    DECODER = "decoder"


class DtypeOption(StrEnum):
    """What `--dtype` takes."""

    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"


def convert(
    source: Annotated[
        Path, typer.Argument(metavar="SOURCE", help="The checkpoint's folder, file or prefix.")
    ],
    to: Annotated[Path, typer.Option("--to", help="The folder to write.")],
    pooling: Annotated[
        PoolingOption | None,
        typer.Option("--pooling", help="Of a plain T5. Default: mean."),
    ] = None,
    dtype: Annotated[
        DtypeOption, typer.Option("--dtype", help="Of weights and activations.")
    ] = DtypeOption.FLOAT32,
    vocabulary: Annotated[
        Path | None,
        typer.Option(
            "--vocabulary",
            metavar="FILE",
            help="SentencePiece model. Default: the folder's, or T5's.",
            exists=True,
            dir_okay=False,
        ),
    ] = None,
    max_length: Annotated[
        int, typer.Option(min=2, help="Tokens that are read of a text, the end token included.")
    ] = 256,
    name: Annotated[
        str | None, typer.Option("--name", help="The model's. Default: that of the folder.")
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the model in the folder.")
    ] = False,
) -> None:
    """Turns a checkpoint into a sentence encoder."""
    require("tensorflow_text", "text")  # its absence is said before anything is read
    with sole_model(to, overwrite=overwrite):
        _convert(source, to, pooling, dtype, vocabulary, max_length, name)


def _convert(
    source: Path,
    to: Path,
    pooling: PoolingOption | None,
    dtype: DtypeOption,
    vocabulary: Path | None,
    max_length: int,
    name: str | None,
) -> None:
    start_tensorflow()
    from use_st5.convert.checkpoint_kind import OPENERS, checkpoint_kind
    from use_st5.export.saved_model import export_saved_model

    kind = checkpoint_kind(source)
    load, rows = (_of_tensors if kind in OPENERS else _of_folder)(source, kind, pooling)
    vectorizer = _vectorizer(vocabulary, None if kind in OPENERS else source, rows)
    with _counted() as on_tensor:
        model = load(dtype=dtype.value, on_tensor=on_tensor)
    with waiting(f"writing {to}"):
        manifest = export_saved_model(
            model, vectorizer, to, name=name or to.name, max_length=max_length
        )
    size = f"{manifest.parameters:,} parameters, {manifest.size_bytes / 1e6:,.1f} MB"
    say(f"{to}: from {kind.value}, {size}")


# What loads the model, and the rows of its table where they are known beforehand.
_Opened = tuple[Callable[..., "SentenceT5"], int | None]


def _of_folder(source: Path, kind: CheckpointKind, pooling: PoolingOption | None) -> _Opened:
    """A folder of Hugging Face or sentence-transformers."""
    from use_st5.convert.checkpoint_kind import CheckpointKind
    from use_st5.convert.huggingface_t5 import load_sentence_t5, read_t5_config
    from use_st5.convert.sentence_transformers_t5 import MODULES, load_sentence_transformers

    if kind is CheckpointKind.HUGGING_FACE:
        load = partial(load_sentence_t5, source, pooling=(pooling or PoolingOption.MEAN).value)
        return load, read_t5_config(source).vocabulary_size
    if pooling is not None:
        raise typer.BadParameter(
            f"{source / MODULES} says how the model pools.", param_hint="--pooling"
        )
    return partial(load_sentence_transformers, source), None


def _of_tensors(source: Path, kind: CheckpointKind, pooling: PoolingOption | None) -> _Opened:
    """A checkpoint of nothing but tensors."""
    from use_st5.convert.checkpoint_kind import OPENERS

    checkpoint = OPENERS[kind](source)
    load = partial(checkpoint.load_sentence_t5, pooling=(pooling or PoolingOption.MEAN).value)
    return load, checkpoint.config.vocabulary_size


def _vectorizer(
    vocabulary: Path | None, folder: Path | None, rows: int | None
) -> SentencePieceVectorizer:
    """The vocabulary that is named, else the folder's, else T5's where its size fits.

    Raises:
        ValueError: There is none, or it has more pieces than the table has rows.
    """
    from use_st5.convert.sentencepiece_model import read_sentencepiece_model
    from use_st5.models.t5.config import T5_ROWS
    from use_st5.text.sentencepiece_vectorizer import SentencePieceVectorizer

    if vocabulary is not None:
        vectorizer = SentencePieceVectorizer(vocabulary)
    elif folder is not None:
        vectorizer = SentencePieceVectorizer(read_sentencepiece_model(folder))
    elif rows == T5_ROWS:
        vectorizer = SentencePieceVectorizer()
    else:
        raise ValueError(
            f"The table has {rows:,} rows, T5's has {T5_ROWS:,}: its vocabulary is another one. "
            "Give it with --vocabulary FILE."
        )
    if rows is not None and vectorizer.vocabulary_size > rows:
        raise ValueError(
            f"{vocabulary or folder}: expected a vocabulary of at most {rows:,} pieces, the rows "
            f"of the table; it has {vectorizer.vocabulary_size:,}."
        )
    return vectorizer


@contextlib.contextmanager
def _counted() -> Iterator[Callable[[str], None]]:
    """A spinner, in a terminal, that counts the tensors which are in place."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn

    columns = (SpinnerColumn(), TextColumn("{task.completed} tensors read: {task.description}"))
    terminal = Console(stderr=True)
    with Progress(*columns, console=terminal, disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task("")
        yield lambda name: progress.update(task, advance=1, description=name)
