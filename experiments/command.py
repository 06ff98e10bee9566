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
from use_st5.io.remote_files import as_written, cached_path

_DATA = "USE_ST5_DATA"
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
    data = cached_path(data)
    if not data.is_dir():
        raise FileNotFoundError(f"expected a folder with data, found no {as_written(data)}")
    try:
        scores = _run_of(target)(data, output, **options)
    except KeyboardInterrupt:
        print(
            "interrupted; the same command continues from the last checkpoint in "
            f"{as_written(output)}",
            file=sys.stderr,
        )
        sys.exit(130)
    expected = getattr(target, "expected", {}) if options.keys() <= _SAME_SETTINGS else {}
    print("score", "value", *(["expected"] if expected else []), sep="\t")
    for name, value in scores.items():
        print(name, f"{value:.4f}", *_cell(expected, name), sep="\t")
    print(f"written: {as_written(output)}", file=sys.stderr)


def _cell(expected: Mapping[str, float], name: str) -> list[str]:
    return [f"{expected[name]:.4f}" if name in expected else ""] if expected else []


def parse(
    experiment: Any, variants: Mapping[str, Any], words: Sequence[str]
) -> tuple[Any, Path, Path, dict[str, Any]]:
    """Reads the words of a command line.

    Args:
        experiment: As for `main`.
        variants: As for `main`.
        words: The command line without the program.

    Returns:
        The experiment or the variant, the data folder, the output folder, and the given keyword
        arguments. Wrong words end the process with exit code 2.
    """
    variant = argparse.ArgumentParser(
        add_help=False, allow_abbrev=False, argument_default=argparse.SUPPRESS
    )
    if variants:
        names = ", ".join(variants)
        variant.add_argument("--variant", choices=[*variants], metavar="NAME", help=names)
    name = vars(variant.parse_known_args(words)[0]).get("variant")
    target = variants[name] if name else experiment
    parser = _parser(_run_of(target), variant)
    options = vars(parser.parse_args(words))
    options.pop("variant", None)
    data, output = options.pop("data"), options.pop("output")
    if options.get("part") == "train":  # Most experiments read no data then.
        return target, data or Path(), output, options
    if data is None:
        parser.error(f"give the folder with --data or in {_DATA}")
    return target, data, output, options


def _run_of(experiment: Any) -> Callable[..., dict[str, float]]:
    return getattr(experiment, "run", experiment)


def _parser(run: Callable[..., Any], parent: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """`--data`, `--out`, and an option for each keyword argument that text can give."""
    parser = argparse.ArgumentParser(
        description=sys.modules["__main__"].__doc__,
        epilog=f"{inspect.getdoc(run)}\n\n{inspect.getdoc(Run)}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=[parent],
        allow_abbrev=False,
        argument_default=argparse.SUPPRESS,
    )
    parser.add_argument("-d", "--data", default=os.environ.get(_DATA) or None, type=Path)
    parser.add_argument("-o", "--out", dest="output", required=True, type=Path)
    for name, annotation in options_of(run).items():
        if keywords := _how_read(annotation):
            parser.add_argument(f"--{name.replace('_', '-')}", **keywords)
    return parser


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


def _how_read(annotation: Any) -> dict[str, Any]:
    """How `argparse` reads a value of a type; nothing for a type that text cannot give."""
    union = get_origin(annotation) in (types.UnionType, Union)
    kind = next(
        each
        for each in (get_args(annotation) if union else (annotation,))
        if each is not types.NoneType
    )
    if get_origin(kind) is Literal:
        return {"choices": get_args(kind)}
    if kind is bool:
        return {"action": argparse.BooleanOptionalAction}
    if get_origin(kind) is Sequence:
        (item,) = get_args(kind)
        return {
            "type": lambda text: tuple(item(each) for each in text.split(",")),
            "metavar": "A,B,…",
        }
    return {"type": kind} if kind in (str, int, float, Path) else {}
