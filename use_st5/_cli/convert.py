"""`use-st5 convert`: a Sentence-T5 out of a foreign checkpoint."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from use_st5._cli.manual import manual
from use_st5._cli.models import start_tensorflow
from use_st5._cli.output import say, waiting
from use_st5._imports import require

if TYPE_CHECKING:
    from use_st5.models.sentence_t5 import SentenceT5

HELP = manual(
    """Turn a T5 checkpoint into a sentence encoder that takes strings.

    SOURCE is a folder of sentence-transformers (modules.json; sentence-t5-base and the like), or a
    folder of Hugging Face with a T5, T5 1.1 or mT5 (config.json), stored as safetensors in one file
    or in shards. Of a plain T5 the raw encoder of the Sentence-T5 paper is made: --pooling mean,
    first or decoder, without projection.

    Nothing in a checkpoint is run; files that hold code (.bin, .pt) are refused. Every name and
    shape is checked before a tensor is read, and one tensor is in memory at a time.""",
    "use-st5 convert sentence-t5-base --to models/sentence_t5_base",
    "use-st5 convert t5-large --to models/t5_large_raw --pooling decoder",
    "use-st5 convert sentence-t5-xxl --to models/sentence_t5_xxl --dtype bfloat16",
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
        Path, typer.Argument(metavar="SOURCE", help="The checkpoint's folder.", exists=True)
    ],
    to: Annotated[Path, typer.Option("--to", help="The folder to write.")],
    pooling: Annotated[
        PoolingOption | None,
        typer.Option("--pooling", help="Of a plain T5. Default: mean."),
    ] = None,
    dtype: Annotated[
        DtypeOption, typer.Option("--dtype", help="Of weights and activations.")
    ] = DtypeOption.FLOAT32,
    max_length: Annotated[
        int, typer.Option(min=2, help="Tokens that are read of a text, the end token included.")
    ] = 256,
    name: Annotated[
        str | None, typer.Option("--name", help="The model's. Default: that of the folder.")
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the folder if it exists.")
    ] = False,
) -> None:
    """Turns a checkpoint into a sentence encoder."""
    if to.exists() and not overwrite:
        raise FileExistsError(f"{to} exists; give --overwrite or choose another folder")
    require("tensorflow_text", "text")  # its absence is said before anything is read
    start_tensorflow()
    from use_st5.convert.sentencepiece_model import read_sentencepiece_model
    from use_st5.export.saved_model import export_saved_model
    from use_st5.text.sentencepiece_vectorizer import SentencePieceVectorizer

    vectorizer = SentencePieceVectorizer(read_sentencepiece_model(source))
    model = _load(source, pooling, dtype)
    with waiting(f"writing {to}"):
        manifest = export_saved_model(
            model, vectorizer, to, name=name or to.name, max_length=max_length
        )
    say(f"{to}: {manifest.parameters:,} parameters, {manifest.size_bytes / 1e6:,.1f} MB")


def _load(source: Path, pooling: PoolingOption | None, dtype: DtypeOption) -> SentenceT5:
    from use_st5.convert.huggingface_t5 import load_sentence_t5
    from use_st5.convert.sentence_transformers_t5 import MODULES, load_sentence_transformers

    options: dict[str, Any] = {"dtype": dtype.value}
    if not (source / MODULES).is_file():
        options["pooling"] = (pooling or PoolingOption.MEAN).value
        load = load_sentence_t5
    elif pooling is None:
        load = load_sentence_transformers
    else:
        raise typer.BadParameter(
            f"{source / MODULES} says how the model pools.", param_hint="--pooling"
        )
    with _counted() as on_tensor:
        return load(source, on_tensor=on_tensor, **options)


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
