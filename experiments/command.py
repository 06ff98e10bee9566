"""The command line of an experiment: an option for each keyword argument of its `run`."""

from __future__ import annotations

import argparse
import inspect
import os
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from experiments.run import Run

# If a run has no other options than these, its scores should be the expected ones.
_SAME_SETTINGS = {"seed", "teacher", "resume", "part", "strategy"}


def main(experiment: Any, variants: Mapping[str, Any] | None = None) -> None:
    """Reads the options of this process, runs the experiment and prints its scores.

    Args:
        experiment: A function `run(data, output, *, …) → scores`, or a value with such a method.
            Its `**options: Unpack[Options]` are the options of a `Run`. Its attribute `expected`
            may hold measured scores.
        variants: Name → the experiment that `--variant NAME` runs instead.
    """
    target, data, output, options = parse(experiment, variants or {}, sys.argv[1:])
    try:
        scores = getattr(target, "run", target)(data, output, **options)
    except KeyboardInterrupt:
        print(f"interrupted; the same command continues in {output}", file=sys.stderr)
        sys.exit(130)
    expected = getattr(target, "expected", {}) if options.keys() <= _SAME_SETTINGS else {}
    for name, value in scores.items():
        told = f"\texpected {expected[name]:.4f}" if name in expected else ""
        print(f"{name}\t{value:.4f}{told}")
    print(f"written: {output}", file=sys.stderr)


def parse(
    experiment: Any, variants: Mapping[str, Any], words: Sequence[str]
) -> tuple[Any, Path, Path, dict[str, Any]]:
    """The experiment or variant, data folder, output folder and options of a command line."""
    settings: dict[str, Any] = dict(allow_abbrev=False, argument_default=argparse.SUPPRESS)
    variant = argparse.ArgumentParser(add_help=False, **settings)
    if variants:
        variant.add_argument("--variant", choices=[*variants], metavar="NAME")
    name = vars(variant.parse_known_args(words)[0]).get("variant")
    target = variants[name] if name else experiment
    run = getattr(target, "run", target)
    parser = argparse.ArgumentParser(
        description=sys.modules["__main__"].__doc__,
        epilog=f"variants: {', '.join(variants)}\n\n{inspect.getdoc(run)}\n\n{inspect.getdoc(Run)}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=[variant],
        **settings,
    )
    data = os.environ.get("USE_ST5_DATA") or None
    parser.add_argument("-d", "--data", default=data, type=Path)
    parser.add_argument("-o", "--out", dest="output", required=True, type=Path)
    for option, annotation in options_of(run).items():
        if keywords := _keywords(annotation):
            parser.add_argument(f"--{option.replace('_', '-')}", **keywords)
    options = vars(parser.parse_args(words))
    options.pop("variant", None)
    data, output = options.pop("data"), options.pop("output")
    if data is None and options.get("part") != "train":  # Most experiments read no data then.
        parser.error("give the folder with --data or in USE_ST5_DATA")
    return target, data or Path(), output, options


def options_of(run: Callable[..., Any]) -> dict[str, Any]:
    """The options of an experiment, its own and the shared ones: keyword → type."""
    option_types, hints = {}, get_type_hints(run)
    for name, parameter in inspect.signature(run).parameters.items():
        if parameter.kind is parameter.KEYWORD_ONLY:
            option_types[name] = hints[name]
        elif parameter.kind is parameter.VAR_KEYWORD:
            for options in get_args(hints[name]):  # the argument of `Unpack`
                option_types |= get_type_hints(options)
    return option_types


def _keywords(annotation: Any) -> dict[str, Any]:
    """How `argparse` reads a value of a type; nothing for a type that text cannot give."""
    if get_origin(annotation) in (types.UnionType, Union):
        annotation = get_args(annotation)[0]
    if get_origin(annotation) is Literal:
        return {"choices": get_args(annotation)}
    if annotation is bool:
        return {"action": argparse.BooleanOptionalAction}
    if get_origin(annotation) is Sequence:
        (item,) = get_args(annotation)
        return {"type": lambda text: tuple(map(item, text.split(","))), "metavar": "A,B,…"}
    return {"type": annotation} if annotation in (str, int, float, Path) else {}
