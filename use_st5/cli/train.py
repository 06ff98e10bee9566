"""`use-st5 train`: trains an encoder on your own files."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import difflib
import inspect
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

import typer

from use_st5.cli.models import OverwriteOption, start_keras
from use_st5.cli.output import manual, print_table, say
from use_st5.io.records import LIMIT, named_errors, read_bounded
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

    TO.run/run.toml has the whole training: MODEL and all options by their names. --from-config
    repeats it; options beside it replace those of the file.

    MODEL, files, vectors, --to and --batch-files may be on gs:// or any other file system of
    TensorFlow. If all are, any machine can continue an interrupted run.

    The papers' experiments are scripts of the repository: experiments/README.md.""",
    "use-st5 train use_transformer_en --train pairs.tsv --to tuned",
    "use-st5 train use_dan_en --train sts-train.csv --validation sts-dev.csv --to tuned --epochs 4",
    "use-st5 train t5-base --train triplets.jsonl --settings sentence_t5 --to my_st5",
    "use-st5 train use_dan_en --train faq.csv --column anchor=title --column positive=body --to f",
    "use-st5 train --from-config tuned.run/run.toml --to tuned_2 --learning-rate 1e-4",
    "use-st5 train use_transformer_en --train gs://B/pairs.tsv --to gs://B/tuned --strategy tpu",
    "use-st5 train fresh:use_dan_en --train n.txt --task n.txt=neighbours --train nli.tsv --to m",
)


def train_options(
    model: Annotated[
        str | None, typer.Argument(metavar="MODEL", help="The model to train.")
    ] = None,
    train: Annotated[
        Words, typer.Option(metavar="FILE[=WEIGHT]", help="A training file, or several.")
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
    from_config: Annotated[
        str | None,
        typer.Option(metavar="FILE.toml", help="These options by name; those given here count."),
    ] = None,
    **given: Any,
) -> dict[str, Any]:
    """The arguments of `use_st5.train` from options; `given` has those of `FileArguments`."""
    names = "model train to validation test task column settings strategy tpu batch_files"
    given |= {name: value for name, value in locals().items() if name in names.split()}
    options = {name: _read(name, value) for name, value in given.items() if value is not None}
    if from_config is not None:
        options = {**_from_config(from_config, {*given, *PYTHON_ONLY}, options), **options}
    if not {"model", "train", "to"} <= set(options):
        text = "expected MODEL, --train and --to DIR. See also experiments/README.md."
        raise typer.BadParameter(text)
    if "tpu" in options:
        if options.get("strategy", "tpu") != "tpu":
            text = f"--tpu expects --strategy tpu, received {options['strategy']}."
            raise typer.BadParameter(text)
        options["strategy"] = f"tpu:{options.pop('tpu')}"
    renamed = {"train": "files", "column": "columns"}
    return {renamed.get(name, name): value for name, value in options.items()}


def _from_config(path: str, names: set[str], options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a TOML file, without those that `--settings` beside it sets."""
    remedy = "Give a run.toml of `use-st5 train`."
    with named_errors(path, remedy):
        config = tomllib.loads(read_bounded(path, limit=LIMIT, remedy=remedy).decode())
    config = {name.replace("-", "_"): value for name, value in config.items()}
    for name in config:
        if name not in names:
            nearest = difflib.get_close_matches(name, names, 1, cutoff=0)[0]
            raise ValueError(f"{path}: unknown key {name!r}; the nearest is {nearest!r}.")
    named_settings = NAMED_SETTINGS.get(options.get("settings", ""), {})
    return {name: value for name, value in config.items() if name not in named_settings}


def train(overwrite: OverwriteOption = False, **options: Any) -> None:
    """Trains an encoder on one's own files; the options are those of `train_options`."""
    arguments = train_options(**options)
    start_keras("train")
    from use_st5.training.train import train as train_on_files

    with continuing(overwrite):
        trained = train_on_files(**arguments, overwrite=overwrite, log=say)
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
    say(f"written: {arguments['to']}")


@contextlib.contextmanager
def continuing(overwrite: bool) -> Iterator[None]:
    """Ends an interrupted command with the advice how it continues."""
    try:
        yield
    except KeyboardInterrupt as interrupt:
        command = "the same command" + " without --overwrite" * overwrite
        say(f"interrupted; {command} continues from the last checkpoint")
        raise typer.Exit(130) from interrupt


# Arguments that are given as words: how often they may be given, and the shape of a word.
_WORDS: dict[str, tuple[Any, str]] = {
    "loss": (list[str], "[NAME=]VALUE"),
    "prompts": (list[str], "COLUMN=TEXT"),
    "freeze": (list[str], "PART"),
    "matryoshka_dimensions": (str, "64,256,…"),
    "score_range": (str, "LOW,HIGH"),
    "micro_batch_size": (str, "INTEGER|auto"),
}
# Options with numbers in a word: how the word is read, and its form.
_SEVERAL = "numbers with commas between them"
_NUMBERS: Mapping[str, tuple[Callable[[str], Any], str]] = {
    "matryoshka_dimensions": (lambda word: tuple(map(int, word.split(","))), _SEVERAL),
    "score_range": (lambda word: tuple(map(float, word.split(","))), _SEVERAL),
    "micro_batch_size": (lambda word: word if word == "auto" else int(word), "a number or auto"),
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


def with_train_options(command: Callable[..., None]) -> inspect.Signature:
    """The signature of a command that passes `**options` on to `train_options`."""
    parameters = [
        parameter
        for function in (train_options, command)
        for parameter in inspect.signature(function, eval_str=True).parameters.values()
        if parameter.kind is not parameter.VAR_KEYWORD
    ]
    return inspect.Signature([*parameters, *_argument_options()])


train.__signature__ = with_train_options(train)  # type: ignore[attr-defined]


def _read(name: str, value: Any) -> Any:
    """The value of an option as `FileArguments` has it."""
    if name == "loss":
        words = [word if "=" in word else f"name={word}" for word in value]
        return {key: parsed(text) for key, text in named_words("--loss", words).items()}
    if name == "task":
        return _one_or_by_name("--task", "FILE=TASK", value)
    if name == "column":
        return named_words("--column", value)
    if name == "prompts":
        return _one_or_by_name("--prompts", "COLUMN=TEXT", value)
    if name == "freeze":
        return tuple(part for part in value if part != "nothing")
    if name not in _NUMBERS:
        return value
    read, form = _NUMBERS[name]
    try:
        return read(value)
    except ValueError as error:
        reason = f"expected {form}, received {value!r}."
        raise typer.BadParameter(reason, param_hint=f"--{name.replace('_', '-')}") from error


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


def parsed(text: str) -> Any:
    """A number, a truth value, a tuple of values if there are commas, or the word itself."""
    if "," in text:
        return tuple(parsed(part.strip()) for part in text.split(",") if part.strip())
    with contextlib.suppress(ValueError, SyntaxError):
        return ast.literal_eval(text.capitalize() if text in ("true", "false") else text)
    return text
