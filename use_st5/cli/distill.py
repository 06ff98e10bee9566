"""`use-st5 distill`: makes a static model from any encoder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from use_st5.cli.files import ColumnOption, open_texts, sole_model
from use_st5.cli.models import OverwriteOption, start_keras
from use_st5.cli.output import manual, say, waiting
from use_st5.io.files import as_written

HELP = manual(
    """Make a static model from any encoder: hundreds of times as fast, at some loss of quality.

    The vector of a text is the mean of a table's rows, one for each token. The rows are the vectors
    that the encoder gives for each token alone, shortened to their principal components; frequent
    tokens get a small weight (the method of model2vec).

    With --texts, lines like the texts that the model will read, the rows are then fitted to the
    encoder's vectors of these texts, and the weights come from their tokens: a better model, after
    the time that the encoder needs for the texts. Ten thousand are enough.

    ENCODER is the name of a bundled model, a folder, or the name of a model on a hub. A BERT,
    RoBERTa, XLM-RoBERTa, MPNet or ModernBERT has pieces of its own; for a T5 or a USE model, give
    --vocabulary or --texts, whose words are then the vocabulary.

    The result is an ordinary model: every command takes it, and --backend onnx runs it without
    TensorFlow.""",
    "use-st5 distill hf://sentence-transformers/all-MiniLM-L6-v2 --to minilm_static",
    "use-st5 distill minilm --texts passages.txt --to minilm_static",
    "use-st5 distill st5_mini_en --vocabulary words.txt --to static",
)


def distill(
    encoder: Annotated[str, typer.Argument(metavar="ENCODER", help="The model to learn from.")],
    to: Annotated[Path, typer.Option("--to", help="The folder to write.")],
    texts: Annotated[
        str | None, typer.Option(metavar="FILE", help="Texts to learn from, one a line.")
    ] = None,
    vocabulary: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Words, one a line, the most frequent first."),
    ] = None,
    dimension: Annotated[int, typer.Option(min=1, help="Numbers of a sentence vector.")] = 256,
    sif: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Smaller: frequent tokens weigh less. 0: all weigh the same. Default: 5e-5, or "
            "3e-3 with --texts.",
        ),
    ] = None,
    column: ColumnOption = None,
    name: Annotated[str | None, typer.Option(help="Default: the folder's name.")] = None,
    overwrite: OverwriteOption = False,
) -> None:
    """Makes a static model from any encoder."""
    with sole_model(to, overwrite=overwrite):
        start_keras("distill")
        from use_st5.training.distill import distill as write_distilled

        lines, words = (_lines(file, column) for file in (texts, vocabulary))
        with waiting(f"distilling {as_written(encoder)}"):
            manifest = write_distilled(
                encoder,
                to,
                texts=lines,
                vocabulary=words,
                dimension=dimension,
                sif=sif,
                name=name or to.name,
                log=say,
            )
    size = f"{manifest.parameters:,} parameters, {manifest.size_bytes / 1e6:,.1f} MB"
    say(f"{as_written(to)}: {dimension} dimensions, {size}")


def _lines(file: str | None, column: str | None) -> list[str]:
    if file is None:
        return []
    with open_texts(file, column=column) as texts:
        lines = [text.strip() for text in texts]
    if not any(lines):
        raise ValueError(f"{file}: expected lines of text, received none")
    return lines
