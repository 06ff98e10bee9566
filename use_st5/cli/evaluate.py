"""`use-st5 evaluate` and `data`: evaluates a model by the papers; lists the evaluation sets."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from use_st5.cli.files import sole_file
from use_st5.cli.models import (
    BackendChoice,
    BatchSizeOption,
    ModelChoice,
    PromptNameOption,
    PromptOption,
    named_encoder,
)
from use_st5.cli.output import echo, manual, print_cards, print_table, say
from use_st5.io.progress import progress_bars

if TYPE_CHECKING:
    from use_st5.cli.models import NamedEncoder
    from use_st5.data.data_folder import DataSource
    from use_st5.evaluation.runner import EvaluationRecord
    from use_st5.evaluation.task import EvaluationTask

DATA_VARIABLE = "USE_ST5_DATA"
_FOLDER = Path("evaluation")
_CACHE = _FOLDER / "cache"
DataOption = Annotated[
    Path | None,
    typer.Option("--data", "-d", envvar=DATA_VARIABLE, help="The folder with the data sets."),
]

HELP = manual(
    r"""Evaluate a model by the protocols of the papers: STS, SentEval, retrieval, bias and more.

    MODEL is the name of a bundled model, the folder of a SavedModel, or your own encoder, as
    FILE.py:NAME or package.module:NAME. NAME is an object with encode(list of str) → array, or a
    class or function without arguments that returns one. Tables show its attribute name.

    --tasks takes names of tasks and groups. --list shows them, with the data that they need and
    where it comes from. If data is missing, a task of a group is skipped, and a task that you named
    yourself is an error. `use-st5 data` shows which data sets are there. mteb:NAME is a task of the
    package mteb, which downloads its data (extra integrations).

    --weat FILE tests associations of your own words (docs/bias.md shows the file). For association
    tests a second table shows the groups, the effect size with its 95 % interval, and p.

    The output is a table and a file with the scores, versions, seed, protocols and the SHA-256 of
    the data files. An existing file keeps its results of other tasks if they are of the same model
    and seed. `use-st5 report` compares such files.

    --prompt-name puts one of the model's prompts, and --prompt your own, before each text of all
    tasks. A Python object gets them as arguments of encode.

    Each sentence is encoded once for all tasks. Vectors and results are cached, so an interrupted
    run continues. A result is computed again if the model, the prompt, the data, an option or
    the seed has changed. Results of a Python object are cached only if it has an attribute
    identity, a text that changes with its weights.""",
    "use-st5 evaluate use_dan_en --tasks sts,senteval --data data",
    "use-st5 evaluate path/to/my_model --tasks weat",
    "use-st5 evaluate path/to/my_model --weat my_words.json",
    "use-st5 evaluate path/to/my_model --tasks stsb --prompt-name query",
    "use-st5 evaluate my_encoder.py:MyEncoder --tasks stsb,tatoeba --out mine.json",
    "use-st5 evaluate --list --data data",
)


def evaluate(
    model: Annotated[
        str | None, typer.Argument(metavar="[MODEL]", help="A model, or FILE.py:NAME.")
    ] = None,
    tasks: Annotated[
        str | None,
        typer.Option("--tasks", "-t", help="Names, with commas. Default: all, or only --weat."),
    ] = None,
    weat: Annotated[
        list[Path] | None, typer.Option(help="A test of your own words; may be repeated.")
    ] = None,
    data: DataOption = None,
    output: Annotated[
        Path | None, typer.Option("--out", "-o", help="Default: evaluation/NAME.json.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 1111,
    cache: Annotated[Path | None, typer.Option(help=f"A folder. Default: {_CACHE}.")] = None,
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="Neither read nor write the cache.")
    ] = False,
    batch_size: BatchSizeOption = None,
    backend: BackendChoice = "tensorflow",
    prompt: PromptOption = None,
    prompt_name: PromptNameOption = None,
    list_tasks: Annotated[bool, typer.Option("--list", help="Only list the tasks.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Evaluates a model."""
    from use_st5.cli.evaluation_tasks import chosen_tasks, print_tasks

    if list_tasks:
        print_tasks(tasks, data, as_json=as_json)
        return
    if model is None:
        raise typer.BadParameter("expected a model, or --list.")
    if cache is not None and no_cache:
        raise typer.BadParameter("expected --cache or --no-cache, received both.")
    model_choice = ModelChoice(model, backend, prompt, prompt_name)
    chosen, skipped = chosen_tasks(tasks, data, weat or ())
    with contextlib.ExitStack() as claims:
        if output is not None:
            claims.enter_context(sole_file(output))
        encoder = named_encoder(model_choice, batch_size=batch_size)
        if output is None:
            # File systems may refuse other characters.
            name = re.sub(r"[^\w.+-]", "_", encoder.name)
            output = _FOLDER / f"{name}.json"
            claims.enter_context(sole_file(output))
        older = _older_record(output, encoder, chosen, seed=seed)
        if encoder.identity is None and not no_cache:
            say(f"{encoder.name} has no attribute identity: its results are not cached")
        folder = None if no_cache or encoder.identity is None else cache or _CACHE
        record = _run(encoder, chosen, data, seed=seed, cache=folder)
        # A record is read on other machines, which do not have this folder.
        for task, reason in skipped.items():
            reason = reason.replace(f" in {data} or", " in DATA or")
            record.skipped[task] = reason.replace(f" in {data},", " in DATA,")
        (record if older is None else older.merged(record)).write(output)
    _print_scores(record, as_json=as_json)
    encoder.say_truncated()
    for reason in dict.fromkeys(skipped.values()):
        say(f"skipped {', '.join(task for task in skipped if skipped[task] == reason)}: {reason}")
    say(f"written: {output}")
    if record.failed:
        reasons = "; ".join(f"{task}: {error}" for task, error in record.failed.items())
        raise ValueError(f"{len(record.failed)} tasks failed: {reasons}")


def _older_record(
    output: Path, encoder: NamedEncoder, tasks: list[EvaluationTask], *, seed: int
) -> EvaluationRecord | None:
    """The record to which this run adds its results; None: there is none, or it is replaced."""
    from use_st5.evaluation.runner import EvaluationRecord

    if not output.exists():
        return None
    older = EvaluationRecord.read(output)
    others = older.tasks.keys() - {task.name for task in tasks}
    expected = (encoder.name, encoder.identity, seed)
    found = (older.model["name"], older.model["identity"], older.seed)
    if others and (expected != found or encoder.identity is None):
        lost = f"{output}: the results of {', '.join(sorted(others))} would be lost, as the weights"
        remedy = "add them to --tasks, or choose another file with --out"
        raise FileExistsError(f"{lost}, prompt and seed may differ: {remedy}")
    return older if others else None


def _run(
    encoder: NamedEncoder,
    tasks: list[EvaluationTask],
    data: Path | None,
    *,
    seed: int,
    cache: Path | None,
) -> EvaluationRecord:
    """Runs the tasks; after Ctrl-C it prints how many are done."""
    from use_st5.cli.evaluation_tasks import EvaluationProgress
    from use_st5.evaluation.runner import evaluate as run_tasks

    with progress_bars(transient=True) as bars:
        progress = EvaluationProgress(bars)
        try:
            return run_tasks(
                progress.encoding(encoder.encode),
                tasks,
                data,
                name=encoder.name,
                identity=encoder.identity,
                seed=seed,
                cache=cache,
                progress=progress,
                command=shlex.join(["use-st5", *sys.argv[1:]]),
                prompts=encoder.prompts,
            )
        except KeyboardInterrupt as interrupt:
            finished = f"interrupted after {progress.done} of {len(tasks)} tasks"
            if cache is None:
                say(f"{finished}; no result was saved")
            else:
                say(f"{finished}; their results are in {cache}; the same command continues")
            raise typer.Exit(130) from interrupt


def _print_scores(record: EvaluationRecord, *, as_json: bool) -> None:
    from use_st5.cli.evaluation_tasks import main_score

    if as_json:
        echo(json.dumps(dataclasses.asdict(record), ensure_ascii=False))
        return
    rows = [
        (
            name,
            result["title"],
            *main_score(result),
            ", ".join(f"{count} {what}" for what, count in result["counts"].items()),
            f"{result['seconds']:.1f}",
        )
        for name, result in record.tasks.items()
    ]
    columns = ["task", "title", "score", "value", "n", "seconds"]
    print_table(columns, rows, title=record.model["name"])
    associations = []
    for name, result in record.tasks.items():
        scores = result["scores"]
        if "p_value" in scores:
            x, y, a, b = result["details"].get("categories") or ("X", "Y", "A", "B")
            effect, low, high = (
                "undefined" if (value := scores[f"effect_size{end}"]) is None else f"{value:.2f}"
                for end in ("", "_low", "_high")
            )
            p = "< 0.0001" if scores["p_value"] < 5e-5 else f"{scores['p_value']:.4f}"
            associations.append((name, f"{x} / {y}", f"{a} / {b}", effect, f"{low} to {high}", p))
    if associations:
        columns = ["task", "targets", "attributes", "effect size d", "95 % interval", "p"]
        print_table(columns, associations, title="associations")


DATA_HELP = manual(
    f"""List the evaluation sets that are available, and how to get the others.

    The command looks for the published file names in --data, or else in the folder of the
    environment variable {DATA_VARIABLE}, and up to two folders deeper. experiments/prepare_data.py
    of the repository makes the files of some sets from a download.""",
    "use-st5 data --data data",
    "USE_ST5_DATA=data use-st5 data",
)


def show_data(folder: DataOption = None) -> None:
    """Shows the data sets."""
    from use_st5.data.data_folder import DataFolder
    from use_st5.evaluation.task import all_tasks

    data_folder = None if folder is None else DataFolder(folder)
    groups: dict[DataSource, dict[str, None]] = {}  # in the order of the tasks
    for task in all_tasks().values():
        for source in task.sources:
            groups.setdefault(source, {})[task.group] = None

    def place(source: DataSource) -> str:
        if data_folder is None or not data_folder.has(source):
            return "unknown" if data_folder is None else "missing"
        return data_folder.find(source).relative_to(data_folder.path).as_posix()

    rows = [
        (source.name, place(source), ", ".join(names), source.origin, source.licence)
        for source, names in groups.items()
    ]
    print_cards(["data set", "found", "for", "from", "licence"], rows)
