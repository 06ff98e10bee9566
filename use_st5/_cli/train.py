"""`use-st5 train`: an encoder on one's own files."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from use_st5._cli.models import start_tensorflow
from use_st5._cli.output import manual, print_table, say

HELP = manual(
    r"""Train an encoder on your own files, and export what came of it.

    MODEL is the name of a bundled model, a folder that use-st5 exported, a checkpoint that
    `use-st5 convert` reads (a Hugging Face T5 or BERT …), or fresh:PRESET, which begins with
    nothing and the vocabulary of your files.

    What a file teaches is read from the names of its columns, and shown before the first step:
    anchor, positive \[, negative, negative_2 …] (texts that belong together); sentence1, sentence2,
    score; premise, hypothesis, label; input, response; text, label; word, definition; text alone.
    Tables are .tsv, .csv, .jsonl and .parquet files with named columns; .txt is running text, or a
    sentence a line; anything else is the name of a TensorFlow data set, NAME\[SPLIT]. Several
    files (--train again) are a mixture, by their sizes or by rates: --train a.tsv=2. --column
    anchor=title says a file's own name for a column, and --task what is to be learnt.

    The model is measured before the first step and ten times on the way: on --dev FILE, by its own
    columns, or on rows that are held out. What is exported to --to is the best step, or the start
    itself where nothing is better. Checkpoints, TensorBoard's files and a plot go to the folder
    TO.run. A run that was interrupted goes on when the same command is given again.

    The papers' experiments are run by `use-st5 reproduce`.""",
    "use-st5 train use_transformer_en --train pairs.tsv --to tuned",
    "use-st5 train use_dan_en --train sts-train.csv --dev sts-dev.csv --to tuned --epochs 4",
    "use-st5 train t5-base --train triplets.jsonl --settings sentence_t5 --to my_st5",
    "use-st5 train use_dan_en --train faq.csv --column anchor=title --column positive=body --to f",
    "use-st5 train fresh:use_dan_en --train novels.txt --train nli.tsv=0.5 --to mine",
)


def train(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="What learns.")],
    files: Annotated[
        list[str] | None,
        typer.Option(
            "--train", metavar="FILE[=RATE]", help="What it learns from; may be repeated."
        ),
    ] = None,
    to: Annotated[Path | None, typer.Option("--to", help="The folder to write.")] = None,
    dev: Annotated[
        list[str] | None, typer.Option("--dev", metavar="FILE", help="What it is measured on.")
    ] = None,
    task: Annotated[
        str | None, typer.Option(help="What the files teach. Default: as their columns say.")
    ] = None,
    column: Annotated[
        list[str] | None, typer.Option(metavar="KEY=NAME", help="A column's name in the files.")
    ] = None,
    settings: Annotated[
        str | None, typer.Option(help="Of a paper: sentence_t5, sbert, simcse, defsent, use.")
    ] = None,
    loss: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="A setting of the loss, as temperature=0.05."),
    ] = None,
    epochs: Annotated[float | None, typer.Option(help="Passes over the files. Default: 3.")] = None,
    steps: Annotated[int | None, typer.Option(help="Steps, instead of epochs.")] = None,
    batch_size: Annotated[
        int | None, typer.Option("--batch", help="Examples of a step. Default: 64.")
    ] = None,
    micro_batch: Annotated[
        int | None, typer.Option(help="Examples that are encoded at once (GradCache).")
    ] = None,
    learning_rate: Annotated[
        float | None, typer.Option("--rate", help="Peak learning rate. Default: the family's.")
    ] = None,
    lora_rank: Annotated[
        int | None, typer.Option("--lora", metavar="RANK", help="Train adapters of this rank.")
    ] = None,
    freeze: Annotated[
        list[str] | None, typer.Option(help="embedding or encoder: what stays as it is.")
    ] = None,
    matryoshka: Annotated[
        str | None, typer.Option(metavar="64,256,…", help="Lengths that shall do by themselves.")
    ] = None,
    dropout: Annotated[float | None, typer.Option(help="Of the encoder in training.")] = None,
    max_tokens: Annotated[
        int | None, typer.Option(help="Tokens of a text that training reads.")
    ] = None,
    keep: Annotated[
        float | None,
        typer.Option(metavar="WEIGHT", help="Mix in the start's own similarities. Default: 0."),
    ] = None,
    evaluations: Annotated[
        int | None, typer.Option(help="Measurements on the way. Default: 10.")
    ] = None,
    patience: Annotated[
        int | None, typer.Option(help="Measurements without a better one that end the run.")
    ] = None,
    storage: Annotated[
        str | None, typer.Option(help="Of the export: float32 (default) or int8.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Of everything random. Default: 0.")] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Begin anew, whatever was there.")
    ] = False,
) -> None:
    """Trains an encoder on one's own files."""
    if not files or to is None:
        raise typer.BadParameter(
            "give your files with --train FILE and the folder to write with --to DIR; a recipe of "
            "the papers is run by `use-st5 reproduce`."
        )
    options: dict[str, Any] = {
        "epochs": epochs, "steps": steps, "batch_size": batch_size, "micro_batch": micro_batch,
        "learning_rate": learning_rate, "lora_rank": lora_rank, "dropout": dropout,
        "max_tokens": max_tokens, "keep": keep, "evaluations": evaluations, "patience": patience,
        "storage": storage, "seed": seed, "freeze": tuple(freeze) if freeze else None,
        "matryoshka": _numbers(matryoshka),
        "loss": {name: _value(text) for name, text in _named("--loss", loss).items()} or None,
    }  # fmt: skip
    start_tensorflow()
    from use_st5.own_data.training import train as train_on_files

    try:
        trained = train_on_files(
            model,
            files,
            to,
            dev=dev or (),
            task=task,
            columns=_named("--column", column),
            settings=settings,
            overwrite=overwrite,
            on_news=say,
            # What was not given is as the settings have it.
            **{name: value for name, value in options.items() if value is not None},
        )
    except KeyboardInterrupt as interrupt:
        say("interrupted; the same command continues from the last checkpoint")
        raise typer.Exit(130) from interrupt
    rows = [
        (name, f"{100 * trained.before[name]:.2f}", f"{100 * value:.2f}")
        for name, value in trained.after.items()
    ]
    print_table(["score", "before", "after"], rows)
    say(f"written: {to}")


def _named(option: str, given: Sequence[str] | None) -> dict[str, str]:
    """`NAME=VALUE` words by name."""
    found = {}
    for word in given or ():
        name, equals, value = word.partition("=")
        if not (name and equals and value):
            raise typer.BadParameter(f"expected NAME=VALUE, received {word!r}.", param_hint=option)
        found[name.strip()] = value.strip()
    return found


def _value(text: str) -> Any:
    """A number, a truth value, several with commas between, or the word itself."""
    if "," in text:
        return tuple(_value(each.strip()) for each in text.split(",") if each.strip())
    with contextlib.suppress(ValueError, SyntaxError):
        return ast.literal_eval(text.capitalize() if text in ("true", "false") else text)
    return text


def _numbers(text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    try:
        return tuple(int(each) for each in text.split(","))
    except ValueError as error:
        raise typer.BadParameter(
            f"expected numbers with commas between, received {text!r}.", param_hint="--matryoshka"
        ) from error
