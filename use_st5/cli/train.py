"""`use-st5 train`: trains an encoder on your own files."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from use_st5.cli.models import start_keras
from use_st5.cli.output import manual, print_table, say
from use_st5.cli.strategy import StrategyOption, TpuOption, strategy_name

if TYPE_CHECKING:
    from use_st5.training.train import Trained

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
    FILE, or on rows that are held out. The best step is exported to --to, or the start itself if no
    step is better. It is evaluated once more on --test FILE; without --validation and --test, on
    half of the rows that are held out. The folder TO.run has the curves of the run, run.png
    (extra plots), the checkpoints and TensorBoard's files. The same command continues an
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


Files = Annotated[
    list[str] | None,
    typer.Option("--train", metavar="FILE[=WEIGHT]", help="A training file; may be repeated."),
]
To = Annotated[str | None, typer.Option("--to", help="The folder to write.")]
Validation = Annotated[
    list[str] | None,
    typer.Option("--validation", metavar="FILE", help="Rows that choose the best step."),
]
Test = Annotated[
    list[str] | None,
    typer.Option("--test", metavar="FILE", help="Rows for one evaluation of the result."),
]
Task = Annotated[
    list[str] | None,
    typer.Option(
        metavar="[FILE=]TASK",
        help="Task of all files, or of one. Default: by their columns.",
    ),
]
Column = Annotated[
    list[str] | None, typer.Option(metavar="KEY=NAME", help="A column's name in the files.")
]
PromptsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--prompts",
        metavar="COLUMN=TEXT",
        help="Text before each text of a column, or TEXT alone before all texts.",
    ),
]
Named = Annotated[
    str | None,
    typer.Option(
        help="Settings of a paper: sentence_t5, sbert, simcse, defsent, use, trans_encoder."
    ),
]
Loss = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=VALUE", help="An argument of the loss, such as temperature=0.05."),
]
Epochs = Annotated[float | None, typer.Option(help="Passes over the files. Default: 3.")]
Steps = Annotated[int | None, typer.Option(help="Number of steps, instead of epochs.")]
Batch = Annotated[int | None, typer.Option("--batch-size", help="Examples of a step. Default: 64.")]
MicroBatchSize = Annotated[
    int | None,
    typer.Option("--micro-batch-size", help="Examples that are encoded at once (GradCache)."),
]
LearningRate = Annotated[
    float | None,
    typer.Option("--learning-rate", help="Peak learning rate. Default: the family's."),
]
Optimizer = Annotated[str | None, typer.Option(help="adam (default) or adafactor.")]
WarmupRatio = Annotated[
    float | None,
    typer.Option(help="Share of the steps in which Adam's learning rate rises. Default: 0.1."),
]
Schedule = Annotated[
    str | None,
    typer.Option(help="Adam's learning rate after the warm-up: linear (default) or constant."),
]
MaxGradNorm = Annotated[
    float | None, typer.Option(help="Norm that Adam's gradients are clipped to; 0: none.")
]
LoraRank = Annotated[
    int | None,
    typer.Option("--lora-rank", metavar="RANK", help="Train adapters of this rank."),
]
Freeze = Annotated[
    list[str] | None,
    typer.Option(help="Part that is not trained: embedding, all_embeddings, head or nothing."),
]
TrainOnly = Annotated[
    str | None,
    typer.Option(
        "--train-only",
        help="The only part of the encoder that is trained: embedding, the token table.",
    ),
]
HeadInit = Annotated[
    str | None,
    typer.Option(
        "--head-init",
        help="How the classification head starts: linear-probe (default) or random.",
    ),
]
Matryoshka = Annotated[
    str | None,
    typer.Option(
        "--matryoshka-dimensions",
        metavar="64,256,…",
        help="Lengths to which vectors can be cut and stay good.",
    ),
]
Dropout = Annotated[float | None, typer.Option(help="Dropout of the encoder in training.")]
Words = Annotated[int | None, typer.Option(help="Words in a fresh vocabulary. Default: 40000.")]
Bigrams = Annotated[int | None, typer.Option(help="Bi-grams in a fresh vocabulary. Default: 0.")]
MaxLength = Annotated[
    int | None,
    typer.Option(
        "--max-length",
        help="Tokens of a text in training. Default: the model's limit; 128 for a USE-DAN.",
    ),
]
ScoreRange = Annotated[
    str | None,
    typer.Option(metavar="LOW,HIGH", help="Lowest and highest score. Default: a usual range."),
]
Keep = Annotated[
    float | None,
    typer.Option(metavar="WEIGHT", help="Weight of the start's similarities. Default: 0."),
]
Teacher = Annotated[
    str | None,
    typer.Option(
        metavar="MODEL",
        help="An encoder, or a file of its vectors, to learn from; or a cross-encoder.",
    ),
]
Cycles = Annotated[
    int | None, typer.Option(help="Cycles of Trans-Encoder, for pairs without a score. Default: 2.")
]
Evaluations = Annotated[
    int | None, typer.Option(help="Evaluations during the training. Default: 10.")
]
Patience = Annotated[
    int | None,
    typer.Option(
        "--early-stopping-patience",
        help="Stop after so many evaluations without improvement.",
    ),
]
Precision = Annotated[
    str | None,
    typer.Option(
        "--precision",
        help="Precision of the exported weights: float32 or int8. Default: as the start.",
    ),
]
Seed = Annotated[int | None, typer.Option(help="Seed of all random numbers. Default: 0.")]
BatchFiles = Annotated[
    str | None,
    typer.Option(
        metavar="FOLDER", help="The folder of the batches for a TPU's machines or other workers."
    ),
]
Overwrite = Annotated[
    bool,
    typer.Option("--overwrite", help="Start again: replace the model and the files of the run."),
]

_NOTHING_GIVEN = (
    "expected your files with --train FILE, and the folder to write with --to DIR. (The papers' "
    "experiments are scripts in experiments/ of the repository.)"
)


def train(
    context: typer.Context,
    model: Annotated[str, typer.Argument(metavar="MODEL", help="The model to train.")],
    files: Files = None,
    to: To = None,
    validation: Validation = None,
    test: Test = None,
    task: Task = None,
    column: Column = None,
    prompts: PromptsOption = None,
    settings: Named = None,
    loss: Loss = None,
    epochs: Epochs = None,
    steps: Steps = None,
    batch_size: Batch = None,
    micro_batch_size: MicroBatchSize = None,
    learning_rate: LearningRate = None,
    optimizer: Optimizer = None,
    warmup_ratio: WarmupRatio = None,
    schedule: Schedule = None,
    max_grad_norm: MaxGradNorm = None,
    lora_rank: LoraRank = None,
    freeze: Freeze = None,
    train_only: TrainOnly = None,
    head_init: HeadInit = None,
    matryoshka_dimensions: Matryoshka = None,
    dropout: Dropout = None,
    words: Words = None,
    bigrams: Bigrams = None,
    max_length: MaxLength = None,
    score_range: ScoreRange = None,
    keep: Keep = None,
    teacher: Teacher = None,
    cycles: Cycles = None,
    evaluations: Evaluations = None,
    early_stopping_patience: Patience = None,
    precision: Precision = None,
    seed: Seed = None,
    strategy: StrategyOption = None,
    tpu: TpuOption = None,
    batch_files: BatchFiles = None,
    overwrite: Overwrite = False,
) -> None:
    """Trains an encoder on one's own files."""
    if not files or to is None:
        raise typer.BadParameter(_NOTHING_GIVEN)
    options = _options(context.params)
    options |= {"task": _task(task), "columns": named_words("--column", column)}
    options |= {"settings": settings, "strategy": strategy_name(strategy, tpu)}
    start_keras("train")
    from use_st5.training.train import train as train_on_files

    try:
        trained = train_on_files(model, files, to, log=say, **options)
    except KeyboardInterrupt as interrupt:
        command = "the same command" + (" without --overwrite" if overwrite else "")
        say(f"interrupted; {command} continues from the last checkpoint")
        raise typer.Exit(130) from interrupt
    _show_scores(trained)
    say(f"written: {to}")


def _show_scores(trained: Trained) -> None:
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


# Options that are passed on without a change.
_PLAIN = (
    "batch_files",
    "batch_size",
    "bigrams",
    "cycles",
    "dropout",
    "early_stopping_patience",
    "epochs",
    "evaluations",
    "head_init",
    "keep",
    "learning_rate",
    "lora_rank",
    "max_grad_norm",
    "max_length",
    "micro_batch_size",
    "optimizer",
    "overwrite",
    "precision",
    "schedule",
    "seed",
    "steps",
    "teacher",
    "train_only",
    "warmup_ratio",
    "words",
)


def _options(given: Mapping[str, Any]) -> dict[str, Any]:
    """The options that were given; the others come from the named settings or the defaults."""
    options = {name: given[name] for name in _PLAIN if given[name] is not None}
    options |= {name: given[name] or () for name in ("validation", "test")}
    if given["freeze"]:
        options["freeze"] = tuple(part for part in given["freeze"] if part != "nothing")
    if given["matryoshka_dimensions"] is not None:
        lengths = _numbers("--matryoshka-dimensions", given["matryoshka_dimensions"], int)
        options["matryoshka_dimensions"] = lengths
    if given["score_range"] is not None:
        options["score_range"] = _numbers("--score-range", given["score_range"], float)
    if given["prompts"]:
        options["prompts"] = _prompts(given["prompts"])
    if given["loss"]:
        options["loss"] = {
            n: _value(text) for n, text in named_words("--loss", given["loss"]).items()
        }
    return options


def _prompts(given: Sequence[str]) -> str | dict[str, str]:
    """One prompt for all texts, or prompts by column; spaces at their ends are kept."""
    if len(given) == 1 and "=" not in given[0]:
        return given[0]
    prompts = {}
    for word in given:
        column, equals, text = word.partition("=")
        if not (column.strip() and equals):
            raise typer.BadParameter(
                "expected COLUMN=TEXT for each column, or one TEXT for all, received "
                f"{' '.join(given)}.",
                param_hint="--prompts",
            )
        prompts[column.strip()] = text
    return prompts


def _task(given: Sequence[str] | None) -> str | dict[str, str] | None:
    """One task for all files, or tasks by file."""
    if not given:
        return None
    if len(given) == 1 and "=" not in given[0]:
        return given[0]
    by_file = (word.rpartition("=") for word in given)
    tasks = {name: task for name, _, task in by_file}
    if "" in tasks:
        raise typer.BadParameter(
            f"expected one task for all files, or FILE=TASK for each, received {' '.join(given)}.",
            param_hint="--task",
        )
    return tasks


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
        return tuple(_value(each.strip()) for each in text.split(",") if each.strip())
    with contextlib.suppress(ValueError, SyntaxError):
        return ast.literal_eval(text.capitalize() if text in ("true", "false") else text)
    return text


def _numbers(option: str, text: str, kind: type) -> tuple[Any, ...]:
    try:
        return tuple(kind(each) for each in text.split(","))
    except ValueError as error:
        raise typer.BadParameter(
            f"expected numbers with commas between them, such as 64,256, received {text!r}.",
            param_hint=option,
        ) from error
