"""`use-st5 train`: runs a recipe."""

from __future__ import annotations

import ast
import importlib
import inspect
from pathlib import Path
from typing import Annotated, Any, Protocol

import typer

from use_st5._cli.manual import manual
from use_st5._cli.models import start_tensorflow
from use_st5._cli.output import print_table, say

_PACKAGE = "use_st5.recipes"
_DATA_VARIABLE = "USE_ST5_DATA"

HELP = manual(
    f"""Train a model by a recipe.

    A recipe is one experiment: its data, model, tasks and settings. --list shows those there are;
    the head of each recipe's file says what it costs and which scores to expect.

    Checkpoints go to the output folder. A run that was interrupted continues from its last one when
    the same command is given again; with --no-resume an output folder that holds checkpoints is
    refused. At the end the scores are printed.

    The data is looked for in --data, else in the folder that the environment variable
    {_DATA_VARIABLE} names.""",
    "use-st5 train --list",
    "use-st5 train use_dan_en --data data --teacher teacher --out runs/use_dan_en",
    "use-st5 train use_dan_en --data data --steps 200 --seed 1 --out runs/short",
)


class Recipe(Protocol):
    """What a module in `use_st5/recipes` offers; an option that `run` has not is refused."""

    def run(
        self,
        data: Path,
        output: Path,
        *,
        seed: int = 0,
        steps: int | None = None,
        teacher: Path | None = None,
        resume: bool = True,
    ) -> dict[str, float]:
        """Trains into `output` and returns the scores by name."""
        ...


def train(
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
    list_recipes: Annotated[bool, typer.Option("--list", help="Show the recipes and end.")] = False,
) -> None:
    """Trains a model by a recipe."""
    if list_recipes:
        rows = [(name, _first_line(path)) for name, path in _recipes().items()]
        print_table(["recipe", "what it trains"], rows)
        return
    if recipe is None:
        raise typer.BadParameter("give the name of a recipe, or --list.")
    if recipe not in _recipes():
        raise typer.BadParameter(
            f"there is no recipe {recipe!r}; there is: {', '.join(_recipes()) or 'none'}."
        )
    if data is None:
        raise typer.BadParameter(
            f"give the folder with --data or in {_DATA_VARIABLE}.", param_hint="--data"
        )
    if not data.is_dir():
        raise FileNotFoundError(f"expected a folder with data, found no {data}")
    output = output or Path("runs", recipe)
    start_tensorflow()
    module = _import(recipe)
    wanted = {"seed": seed, "steps": steps, "teacher": teacher, "resume": resume}
    options = _understood(module, recipe, wanted)
    try:
        scores = module.run(data, output, **options)
    except KeyboardInterrupt as interrupt:
        say(f"interrupted; the same command continues from the last checkpoint in {output}")
        raise typer.Exit(130) from interrupt
    print_table(["score", "value"], [(name, f"{value:.4f}") for name, value in scores.items()])
    say(f"written: {output}")


def _recipes() -> dict[str, Path]:
    """The file of each recipe by name, without importing one."""
    package = importlib.import_module(_PACKAGE)
    files = [file for folder in package.__path__ for file in Path(folder).glob("[!_]*.py")]
    return {file.stem: file for file in sorted(files)}


def _first_line(file: Path) -> str:
    docstring = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    return (docstring.splitlines() or [""])[0]


def _import(recipe: str) -> Recipe:
    return importlib.import_module(f"{_PACKAGE}.{recipe}")


def _understood(module: Recipe, recipe: str, wanted: dict[str, Any]) -> dict[str, Any]:
    """Those of the `wanted` options that the recipe has; one it lacks must be at its default."""
    has = inspect.signature(module.run).parameters
    defaults = {"seed": 0, "steps": None, "teacher": None, "resume": True}
    for name, value in wanted.items():
        if name not in has and value != defaults[name]:
            raise typer.BadParameter(
                f"the recipe {recipe} has no such setting.", param_hint=f"--{name}"
            )
    return {name: value for name, value in wanted.items() if name in has}
