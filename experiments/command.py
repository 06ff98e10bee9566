"""The command line of an experiment: an option for each keyword argument of its `run`."""

from __future__ import annotations

import argparse
import inspect
import os
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

from experiments.run import Run


def main(experiment: Any, variants: Mapping[str, Any] | None = None) -> None:
    """Reads the options of this process, runs the experiment and prints its scores.

    Args:
        experiment: A function `run(data, output, *, …) → scores`, or a value with such a method.
            Its `**options` are those of `Run`.
        variants: Name → the experiment that `--variant NAME` runs instead.
    """
    run, data, output, options = parse(experiment, variants or {}, sys.argv[1:])
    for name, value in run(data, output, **options).items():
        print(f"{name}\t{value:.4f}")
    print(f"written: {output}", file=sys.stderr)


def parse(
    experiment: Any, variants: Mapping[str, Any], words: Sequence[str]
) -> tuple[Callable[..., dict[str, float]], Path, Path, dict[str, Any]]:
    """The `run`, data folder, output folder and options of a command line."""
    settings: dict[str, Any] = dict(allow_abbrev=False, argument_default=argparse.SUPPRESS)
    variant = argparse.ArgumentParser(add_help=False, **settings)
    variant.add_argument("--variant", choices=[*variants], metavar="NAME")
    chosen, others = variant.parse_known_args(words)
    target = variants[chosen.variant] if "variant" in chosen else experiment
    run = getattr(target, "run", target)
    parser = argparse.ArgumentParser(
        description=sys.modules["__main__"].__doc__,
        epilog=f"variants: {', '.join(variants)}\n\n{inspect.getdoc(run)}\n\n{inspect.getdoc(Run)}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        **settings,
    )
    data = os.environ.get("USE_ST5_DATA") or "data"
    parser.add_argument("-d", "--data", default=data, type=Path)
    parser.add_argument("-o", "--out", dest="output", required=True, type=Path)
    for option, annotation in options_of(run).items():
        parser.add_argument(f"--{option.replace('_', '-')}", **_keywords(annotation))
    options = vars(parser.parse_args(others))
    return run, options.pop("data"), options.pop("output"), options


def options_of(run: Callable[..., Any]) -> dict[str, Any]:
    """The options of an experiment, its own and those of `Run`: keyword → type."""
    options: dict[str, Any] = {}
    for name, parameter in inspect.signature(run, eval_str=True).parameters.items():
        if parameter.kind is parameter.KEYWORD_ONLY:
            options[name] = parameter.annotation
        elif parameter.kind is parameter.VAR_KEYWORD:
            options |= options_of(Run)
    return options


def _keywords(annotation: Any) -> dict[str, Any]:
    """How `argparse` reads a value of a type."""
    if get_origin(annotation) in (types.UnionType, Union):
        annotation = get_args(annotation)[0]
    if get_origin(annotation) is Literal:
        return {"choices": get_args(annotation)}
    if get_origin(annotation) is Sequence:
        (item,) = get_args(annotation)
        return {"type": lambda text: tuple(map(item, text.split(","))), "metavar": "A,B,…"}
    return {"type": annotation}
