"""`use-st5 train`: trains an encoder on your own files."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import inspect
import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import typer

from use_st5.cli.models import OverwriteOption, start_keras
from use_st5.cli.output import manual, print_table, say
from use_st5.training.arguments import NAMED_SETTINGS, PYTHON_ONLY, TYPES, FileArguments

Words = list[str] | None
HELP = manual(
    r"""Train an encoder on your own files, and export the best step.

    MODEL is the name of a bundled model, a folder that use-st5 exported, a checkpoint that
    `use-st5 convert` reads (a Hugging Face T5 or BERT …), or fresh:PRESET: initial weights, with a
    vocabulary of your files.

    The column names of a file state the task: anchor, positive \[, negative, negative_2 …];
    sentence1, sentence2, score; the same two without a score; premise, hypothesis, label; input,
    response; text, label; word, definition; only text. The command shows the task before the
    first step.
    Tables are .tsv, .csv, .jsonl and .parquet files with named columns. A .txt is running text, or
    has a sentence a line. Any other name is a TensorFlow data set, NAME\[SPLIT]. Repeat --train to
    mix several files, by their sizes or by weights: --train a.tsv=2. --column anchor=title gives
    the column's name in your file. --task sets the task of all files, --task novel.txt=neighbours
    that of one: a file with a sentence a line can be running text.

    The model is evaluated before the first step and ten times during the training: on --validation
    FILE, by nDCG@10 on the retrieval set --validation FOLDER (corpus.jsonl, queries.jsonl,
    qrels/*.tsv), or on rows that are held out. The best step is exported to --to, or the start
    itself if no step is better. It is evaluated once more on --test FILE; without --validation and
    --test, on half of the rows that are held out. The folder TO.run has the curves of the run,
    run.png (extra plots), the checkpoints and TensorBoard's files. The same command continues an
    interrupted run, without --overwrite, which starts again.

    --strategy mirrored trains on all GPUs of the machine, tpu on a TPU (--tpu NAME for a TPU of
    another machine). The devices share each batch, and the result is the same. Workers in other
    processes, such as those of a pod, read the batches from --batch-files, or from TO.run.

    MODEL, files, vectors, --to and --batch-files may be on gs:// or any other file system of
    TensorFlow. If all are, any machine can continue an interrupted run.

    The papers' experiments are scripts of the repository: experiments/README.md.""",
    "use-st5 train use_transformer_en --train pairs.tsv --to tuned",
    "use-st5 train use_dan_en --train sts-train.csv --validation sts-dev.csv --to tuned --epochs 4",
    "use-st5 train t5-base --train triplets.jsonl --settings sentence_t5 --to my_st5",
    "use-st5 train use_dan_en --train faq.csv --column anchor=title --column positive=body --to f",
    "use-st5 train use_transformer_en --train gs://B/pairs.tsv --to gs://B/tuned --strategy tpu",
    "use-st5 train fresh:use_dan_en --train n.txt --task n.txt=neighbours --train nli.tsv --to m",
)


def train(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="The model to train.")],
    files: Annotated[
        Words, typer.Option("--train", metavar="FILE[=WEIGHT]", help="A training file, or several.")
    ] = None,
    to: Annotated[str | None, typer.Option(help="The folder to write.")] = None,
    validation: Annotated[
        Words,
        typer.Option(metavar="FILE", help="Rows or a retrieval set; chooses the best step."),
    ] = None,
    test: Annotated[
        Words, typer.Option(metavar="FILE", help="Rows for one evaluation of the result.")
    ] = None,
    task: Annotated[
        Words,
        typer.Option(
            metavar="[FILE=]TASK", help="Task of all files, or of one. Default: by their columns."
        ),
    ] = None,
    column: Annotated[
        Words, typer.Option(metavar="KEY=NAME", help="A column's name in the files.")
    ] = None,
    settings: Annotated[
        str | None, typer.Option(help=f"Settings of a paper: {', '.join(NAMED_SETTINGS)}.")
    ] = None,
    strategy: Annotated[
        Literal["one", "mirrored", "tpu"] | None,
        typer.Option(help="The devices. Default: the first GPU, or the CPU."),
    ] = None,
    tpu: Annotated[str | None, typer.Option(metavar="NAME", help="The TPU's name.")] = None,
    batch_files: Annotated[
        str | None, typer.Option(metavar="FOLDER", help="The batches for other workers.")
    ] = None,
    overwrite: OverwriteOption = False,
    **arguments: Any,
) -> None:
    """Trains an encoder on one's own files; `arguments` are those of `FileArguments`."""
    if not files or to is None:
        raise typer.BadParameter("expected --train and --to DIR. See also experiments/README.md.")
    options = {name: _read(name, value) for name, value in arguments.items() if value is not None}
    tasks = _one_or_by_name("--task", "FILE=TASK", task) if task else None
    columns = named_words("--column", column)
    if tpu is not None and strategy not in (None, "tpu"):
        raise typer.BadParameter(f"--tpu expects --strategy tpu, received {strategy}.")
    start_keras("train")
    from use_st5.training.train import train as train_on_files

    try:
        trained = train_on_files(
            model,
            files,
            to,
            validation=validation or (),
            test=test or (),
            task=tasks,
            columns=columns,
            settings=settings,
            strategy=strategy if tpu is None else f"tpu:{tpu}",
            batch_files=batch_files,
            overwrite=overwrite,
            log=say,
            **options,
        )
    except KeyboardInterrupt as interrupt:
        command = "the same command" + " without --overwrite" * overwrite
        say(f"interrupted; {command} continues from the last checkpoint")
        raise typer.Exit(130) from interrupt
    parts = {
        "validation": (trained.before, trained.after),
        "test": (trained.test_before, trained.test_after),
    }
    rows = [
        (part, name, f"{100 * before[name]:.2f}", f"{100 * after[name]:.2f}")
        for part, (before, after) in parts.items()
        for name in after
    ]
    print_table(["rows", "score", "before", "after"], rows)
    say(f"written: {to}")


# Arguments that are given as words: how often they may be given, and the shape of a word.
_WORDS: dict[str, tuple[Any, str]] = {
    "loss": (list[str], "[NAME=]VALUE"),
    "prompts": (list[str], "COLUMN=TEXT"),
    "freeze": (list[str], "PART"),
    "matryoshka_dimensions": (str, "64,256,…"),
    "score_range": (str, "LOW,HIGH"),
}


def _argument_options() -> list[inspect.Parameter]:
    """An option for each field of `FileArguments`, whose help is its text in the docstring."""
    docs = "\n".join(inspect.getdoc(each) or "" for each in FileArguments.__mro__[1::-1])
    texts = dict(re.findall(r"^ {4}(\w+): (.+(?:\n {8}.+)*)", docs, re.MULTILINE))
    options = []
    for field in dataclasses.fields(FileArguments):
        if field.name in PYTHON_ONLY:
            continue
        usual_type: Any = TYPES.get(str(field.type).removesuffix(" | None"), str)
        option_type, metavar = _WORDS.get(field.name, (usual_type, None))
        text = " ".join(texts.get(field.name, "").split()).replace("`", "")
        if isinstance(field.default, int | float | str):
            text += f" Default: {field.default}."
        option = typer.Option(
            f"--{field.name.replace('_', '-')}",
            metavar=metavar,
            help=text.replace("None: ", "default: "),
        )
        options.append(
            inspect.Parameter(
                field.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=None,
                annotation=Annotated[option_type | None, option],
            )
        )
    return options


_signature = inspect.signature(train, eval_str=True)
_own = [each for each in _signature.parameters.values() if each.kind is not each.VAR_KEYWORD]
train.__signature__ = _signature.replace(  # type: ignore[attr-defined]
    parameters=[*_own, *_argument_options()]
)


def _read(name: str, value: Any) -> Any:
    """The value of an option as `FileArguments` has it."""
    if name == "loss":
        words = [word if "=" in word else f"name={word}" for word in value]
        return {key: _value(text) for key, text in named_words("--loss", words).items()}
    if name == "prompts":
        return _one_or_by_name("--prompts", "COLUMN=TEXT", value)
    if name == "freeze":
        return tuple(part for part in value if part != "nothing")
    if name not in ("matryoshka_dimensions", "score_range"):
        return value
    try:
        number = int if name == "matryoshka_dimensions" else float
        return tuple(map(number, value.split(",")))
    except ValueError as error:
        hint = f"--{name.replace('_', '-')}"
        reason = f"expected numbers with commas between them, received {value!r}."
        raise typer.BadParameter(reason, param_hint=hint) from error


def _one_or_by_name(option: str, form: str, given: Sequence[str]) -> str | dict[str, str]:
    """One word for all, or words by name; spaces at their ends are kept."""
    if len(given) == 1 and "=" not in given[0]:
        return given[0]
    words: dict[str, str] = {}
    for word in given:
        # A file's name may have a sign of equality, and so may a prompt.
        split = word.rpartition if option == "--task" else word.partition
        name, equals, text = split("=")
        if not (name.strip() and equals):
            reason = f"expected {form} for each, or one for all, received {' '.join(given)}."
            raise typer.BadParameter(reason, param_hint=option)
        words[name.strip()] = text
    return words


def named_words(option: str, given: Sequence[str] | None) -> dict[str, str]:
    """Splits words `NAME=VALUE`: name → value."""
    values = {}
    for word in given or ():
        name, equals, value = word.partition("=")
        if not (name and equals and value):
            raise typer.BadParameter(f"expected NAME=VALUE, received {word!r}.", param_hint=option)
        values[name.strip()] = value.strip()
    return values


def _value(text: str) -> Any:
    """A number, a truth value, a tuple of values if there are commas, or the word itself."""
    if "," in text:
        return tuple(_value(part.strip()) for part in text.split(",") if part.strip())
    with contextlib.suppress(ValueError, SyntaxError):
        return ast.literal_eval(text.capitalize() if text in ("true", "false") else text)
    return text
