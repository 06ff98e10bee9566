"""`use-st5 reproduce`: runs a recipe."""

from __future__ import annotations

import ast
import contextlib
import importlib
import inspect
import itertools
import os
import types
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol, Union, get_args, get_origin, get_type_hints

import typer

from use_st5._remote_files import as_written
from use_st5.cli.destination import sole_folder
from use_st5.cli.elsewhere import fetched
from use_st5.cli.models import check_keras, start_tensorflow
from use_st5.cli.output import manual, print_table, say
from use_st5.cli.strategy import Strategy, StrategyOption, TpuOption, strategy_name

_PACKAGE = "use_st5.recipes"
_DATA_VARIABLE = "USE_ST5_DATA"
_DEFAULTS = {
    **{"seed": 0, "steps": None, "teacher": None, "resume": True, "part": None, "strategy": None}
}

HELP = manual(
    f"""Run an experiment again: train a model by a recipe.

    A recipe is one experiment: its data, model, tasks and settings. --list shows those there are;
    the head of each recipe's file says what it costs and which scores to expect.

    Checkpoints go to the output folder. A run that was interrupted continues from its last one when
    the same command is given again; with --no-resume an output folder that holds checkpoints is
    refused. At the end the scores are printed.

    --variant chooses among the forms that a recipe's file names, such as the settings of its paper;
    a wrong name lists them. A recipe's further settings are options too, `--NAME VALUE`, several
    values with commas between; they are the keyword arguments of its `run`.

    With fewer than 100 --steps a run is a trial: of each task's data it prepares the first rows
    alone, as many as these steps read, and its scores say nothing of the recipe. What was prepared
    stays in OUT/prepared, or in the folder of --prepared for several runs, and is used again.

    --strategy trains on several devices: mirrored (all GPUs of the machine), tpu (with --tpu NAME
    where it is not this machine's own) or multi_worker (several machines, each with its TF_CONFIG
    and --part train); one is the first GPU, or the CPU.

    The data is looked for in --data, else in the folder that the environment variable
    {_DATA_VARIABLE} names.

    --data and --out may lie on gs:// and every other file system of TensorFlow: the data is copied
    to this machine, and the run goes on from any. Recipes that train several models, or keep a
    teacher's vectors, refuse such an output. --batch_files names where a TPU's other machines find
    the batches.

    A recipe that has parts can train on another machine than the one that reads the data and
    exports the model: --part prepare, then --part train, which needs no TensorFlow where
    KERAS_BACKEND is jax, then --part export, the output folder carried along.""",
    "use-st5 reproduce --list",
    "use-st5 reproduce --corpora",
    "use-st5 reproduce use_dan_en --data data --teacher teacher --out runs/use_dan_en",
    "use-st5 reproduce use_dan_en --data data --steps 200 --seed 1 --out runs/short",
    "use-st5 reproduce sentence_t5 --variant published --data data --strategy mirrored",
    "use-st5 reproduce sentence_t5 --data gs://B/data --out gs://B/st5 --strategy tpu",
    "use-st5 reproduce transfer_tables --data data --tasks trec,sst2 --repeats 3",
)
# Options that only a recipe knows pass the command's parser and come to `_own_settings`.
CONTEXT = {"allow_extra_args": True, "ignore_unknown_options": True}


class Experiment(Protocol):
    """What a module in `use_st5/recipes` offers as `RECIPE`, or is itself by a function `run`.

    Its further forms stand in `VARIANTS` by name. An option that `run` has not is refused. It may
    have the scores that are `expected` of it, by name.
    """

    run: Callable[..., dict[str, float]]


def reproduce(
    context: typer.Context,
    recipe: Annotated[
        str | None, typer.Argument(metavar="[RECIPE]", help="The name of a recipe.")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option("--data", "-d", envvar=_DATA_VARIABLE, help="The folder with the data."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="The folder to write. Default: runs/RECIPE."),
    ] = None,
    steps: Annotated[
        int | None, typer.Option(min=1, help="Optimizer steps. Default: the recipe's.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    teacher: Annotated[Path | None, typer.Option(help="The folder of a teacher's vectors.")] = None,
    resume: Annotated[
        bool, typer.Option("--resume/--no-resume", help="Continue an interrupted run.")
    ] = True,
    part: Annotated[
        str | None, typer.Option(help="prepare, train or export alone. Default: all.")
    ] = None,
    variant: Annotated[str | None, typer.Option(help="Which form of the recipe.")] = None,
    strategy: StrategyOption = None,
    tpu: TpuOption = None,
    list_recipes: Annotated[bool, typer.Option("--list", help="Show the recipes and end.")] = False,
    list_corpora: Annotated[
        bool,
        typer.Option("--corpora", help="Show the corpora, their places and licences, and end."),
    ] = False,
) -> None:
    """Runs a recipe."""
    if list_recipes or list_corpora:
        print_table(*(_listed_recipes() if list_recipes else _listed_corpora()))
        return
    if recipe is None:
        raise typer.BadParameter("give the name of a recipe, or --list.")
    if recipe not in _recipes():
        raise typer.BadParameter(
            f"there is no recipe {recipe!r}; there is: {', '.join(_recipes()) or 'none'}."
        )
    if part != "train":
        check_keras("reproduce" if part is None else f"reproduce --part {part}")
    data = _data_folder(data, part)
    output = output or Path("runs", recipe)
    wanted = {"seed": seed, "steps": steps, "teacher": teacher, "resume": resume, "part": part}
    wanted["strategy"] = strategy_name(strategy, tpu)
    # Of several workers on one folder one alone writes; the recipe knows which.
    workers = strategy is Strategy.MULTI_WORKER
    with contextlib.nullcontext() if workers else sole_folder(output, elsewhere=True):
        scores, expected = _run(recipe, variant, data, output, wanted, context.args)
    heads = ["score", "value", *(["expected"] if expected else [])]
    print_table(heads, [_score_row(name, scores[name], expected) for name in scores])
    say(f"written: {as_written(output)}")


def _run(
    name: str,
    variant: str | None,
    data: Path,
    output: Path,
    wanted: dict[str, Any],
    arguments: list[str],
) -> tuple[Mapping[str, float], Mapping[str, float]]:
    """Runs the recipe and gives its scores and the expected ones; Ctrl-C says how it goes on."""
    if os.environ.get("KERAS_BACKEND", "tensorflow") == "tensorflow":
        start_tensorflow()
    recipe = _import(name, variant)
    options = _understood(recipe, name, wanted) | _own_settings(recipe, name, arguments)
    # What was measured is of the recipe's own settings.
    expected = {} if wanted["steps"] or arguments else getattr(recipe, "expected", {})
    try:
        return recipe.run(data, output, **options), expected
    except KeyboardInterrupt as interrupt:
        place = as_written(output)
        say(f"interrupted; the same command continues from the last checkpoint in {place}")
        raise typer.Exit(130) from interrupt


def _data_folder(data: Path | None, part: str | None) -> Path:
    """The folder with the data; for the training alone any, since nothing is read from it."""
    if part == "train":
        return fetched(data or Path())
    if data is None:
        raise typer.BadParameter(
            f"give the folder with --data or in {_DATA_VARIABLE}.", param_hint="--data"
        )
    folder = fetched(data)
    if not folder.is_dir():
        raise FileNotFoundError(f"expected a folder with data, found no {as_written(data)}")
    return folder


def _recipes() -> dict[str, Path]:
    """The file of each recipe by name, without importing one."""
    package = importlib.import_module(_PACKAGE)
    files = [file for folder in package.__path__ for file in Path(folder).glob("[!_]*.py")]
    return {file.stem: file for file in sorted(files)}


def _listed_recipes() -> tuple[list[str], list[tuple[str, ...]]]:
    """Heads and rows."""
    return ["recipe", "what it trains"], [(n, _first_line(path)) for n, path in _recipes().items()]


def _listed_corpora() -> tuple[list[str], list[tuple[str, ...]]]:
    """Heads and rows."""
    from use_st5.data.corpora import CORPORA

    rows: list[tuple[str, ...]] = [
        (each.name, each.what, each.place, each.licence) for each in CORPORA.values()
    ]
    return ["corpus", "what: keys", "place in the data folder", "licence"], rows


def _score_row(name: str, value: float, expected: Mapping[str, float]) -> tuple[str, ...]:
    shown = (f"{expected[name]:.4f}" if name in expected else "",) if expected else ()
    return (name, f"{value:.4f}", *shown)


def _first_line(file: Path) -> str:
    docstring = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    return (docstring.splitlines() or [""])[0]


def _import(name: str, variant: str | None) -> Experiment:
    """The recipe, or its variant."""
    module = importlib.import_module(f"{_PACKAGE}.{name}")
    variants = vars(module).get("VARIANTS", {})
    if variant is None:
        return vars(module).get("RECIPE", module)
    if variant not in variants:
        raise typer.BadParameter(
            f"{name} has no variant {variant!r}; it has: {', '.join(variants) or 'none'}.",
            param_hint="--variant",
        )
    return variants[variant]


def _understood(recipe: Experiment, name: str, wanted: dict[str, Any]) -> dict[str, Any]:
    """Those of the `wanted` options that the recipe has; one it lacks must be at its default."""
    has = inspect.signature(recipe.run).parameters
    for option, value in wanted.items():
        if option not in has and value != _DEFAULTS[option]:
            raise typer.BadParameter(
                f"the recipe {name} has no such setting.", param_hint=f"--{option}"
            )
    # What is None was not given: the recipe's own default stands.
    return {each: value for each, value in wanted.items() if each in has and value is not None}


def _own_settings(recipe: Experiment, name: str, arguments: list[str]) -> dict[str, Any]:
    """What `--name value` and `--name=value` give to the recipe's further keyword arguments."""
    hints = get_type_hints(recipe.run)
    own = {
        each: hints.get(each)
        for each in inspect.signature(recipe.run).parameters
        if each not in ("data", "output", *_DEFAULTS) and _is_textual(hints.get(each))
    }
    words = [word for argument in arguments for word in _halves(argument)]
    given = {}
    for option, value in itertools.zip_longest(words[::2], words[1::2]):
        key = option.removeprefix("--").replace("-", "_")
        if not option.startswith("--") or key not in own:
            known = ", ".join(f"--{each}" for each in own) or "none"
            raise typer.BadParameter(
                f"{name} has no {option}; its own options: {known}; for those of all recipes "
                "see use-st5 reproduce --help."
            )
        if value is None:
            raise typer.BadParameter("give a value.", param_hint=option)
        given[key] = _value(option, value, own[key])
    return given


def _is_textual(kind: Any) -> bool:
    """Whether a word of the command line can be a value; for a mapping or an object none can."""
    kinds = _kinds(kind)
    if len(kinds) == 1 and (get_origin(kinds[0]) is Literal or kinds[0] == Sequence[str]):
        return True
    return {*kinds} <= {str, int, float, Path}


def _kinds(kind: Any) -> list[Any]:
    """The alternatives of an annotation, but for None."""
    alternatives = get_args(kind) if get_origin(kind) in (types.UnionType, Union) else (kind,)
    return [each for each in alternatives if each is not types.NoneType]


def _halves(argument: str) -> list[str]:
    return argument.split("=", 1) if argument.startswith("--") else [argument]


def _value(option: str, text: str, annotation: Any) -> Any:
    """A value as the annotation of the keyword argument wants it."""
    kind = _kinds(annotation)[0]
    if get_origin(kind) is Literal:
        if text not in get_args(kind):
            expected = ", ".join(get_args(kind))
            raise typer.BadParameter(f"received {text!r}, not {expected}.", param_hint=option)
        return text
    if get_origin(kind) is Sequence:
        return tuple(text.split(","))
    try:
        return kind(text)
    except ValueError as error:
        raise typer.BadParameter(f"received {text!r} ({error}).", param_hint=option) from error
