"""The encoder that `use-st5 evaluate` is given: a model, or an object of the user's own."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import typer

from use_st5.cli.models import CountingEncoder, load_encoder


@dataclass(frozen=True)
class NamedEncoder:
    """What is evaluated.

    Attributes:
        name: What tables call it.
        identity: A text that changes with its weights; None where it is not known.
        encode: Sentences → vectors `[sentences, dim]`.
        say_truncated: Says, when all is encoded, how many texts the model cut; of an object of the
            user's own that is not known.
    """

    name: str
    identity: str | None
    encode: Callable[[list[str]], Any]
    say_truncated: Callable[[], None] = lambda: None


def named_encoder(model: str, *, batch_size: int | None = None) -> NamedEncoder:
    """Loads what the argument MODEL names.

    Args:
        model: The name of a bundled model, the folder of a SavedModel, or an object of the user's
            own as `FILE.py:NAME` or `package.module:NAME`. If NAME is a class, or has no `encode`,
            it is called without arguments and the result is taken.
        batch_size: Is handed to `encode`; None: it decides itself.

    Raises:
        FileNotFoundError: There is no such model or file.
        ImportError: The file or module cannot be imported.
        ValueError: The object is missing, cannot be called, or has no `encode`.
    """
    place, _, name = model.rpartition(":")
    counting = None
    if not place or not name.isidentifier() or Path(model).exists():
        encoder = load_encoder(model)
        name = encoder.name
        counting = CountingEncoder(encoder)
    else:
        encoder = _called(_look_up(_import(place), place, name), model)
        given = getattr(encoder, "name", None)
        name = given if isinstance(given, str) and given else name
    identity = getattr(encoder, "identity", None)
    if identity is not None and not (isinstance(identity, str) and identity):
        raise ValueError(
            f"{model}: expected identity to be a text that changes with the weights, received "
            f"{identity!r}."
        )
    encode = (counting or encoder).encode
    if batch_size is not None:
        _check_batches(encode, model)
        encode = functools.partial(encode, batch_size=batch_size)
    if counting is None:
        return NamedEncoder(name, identity, encode)
    return NamedEncoder(name, identity, encode, counting.say_truncated)


def _import(place: str) -> ModuleType:
    """The module in a file that ends in .py, or of a dotted name, seen from the current folder."""
    file = Path(place)
    is_file = file.suffix == ".py"
    if is_file and not file.is_file():
        raise FileNotFoundError(f"expected a Python file, found no {place}")
    # As for `python FILE` and `python -m MODULE`: what lies beside them can be imported.
    sys.path.insert(0, str(file.resolve().parent if is_file else Path.cwd()))
    try:
        return _import_file(file) if is_file else importlib.import_module(place)
    except Exception as error:
        expected = "" if is_file else "; a file is named FILE.py:NAME"
        raise ImportError(
            f"{place} could not be imported ({type(error).__name__}: {error}){expected}"
        ) from error


def _import_file(file: Path) -> ModuleType:
    # Any: of a file that ends in .py there always is one, and its loader.
    specification: Any = importlib.util.spec_from_file_location(file.stem, file)
    module = importlib.util.module_from_spec(specification)
    # Where dataclasses and pickle look the module up; one that is imported already stays.
    sys.modules.setdefault(file.stem, module)
    specification.loader.exec_module(module)
    return module


def _look_up(module: ModuleType, place: str, name: str) -> Any:
    if hasattr(module, name):
        return getattr(module, name)
    there = [each for each, value in vars(module).items() if each[0] != "_" and callable(value)]
    raise ValueError(f"{place} has no {name}; it has: {', '.join(there) or 'nothing to call'}")


def _called(found: Any, model: str) -> Any:
    """`found` itself if it is an encoder, else what calling it gives."""
    if callable(found) and (isinstance(found, type) or not hasattr(found, "encode")):
        try:
            found = found()
        except Exception as error:
            raise ValueError(
                f"{model}: calling it without arguments failed ({type(error).__name__}: {error}); "
                "expected a function or class that takes none and gives an object with encode"
            ) from error
    if not callable(getattr(found, "encode", None)):
        raise ValueError(
            f"{model}: expected an object with encode(list of str) → array, received "
            f"{type(found).__name__}"
        )
    return found


def _check_batches(encode: Callable[..., Any], model: str) -> None:
    parameters = inspect.signature(encode).parameters.values()
    takes = any(each.name == "batch_size" or each.kind is each.VAR_KEYWORD for each in parameters)
    if not takes:
        raise typer.BadParameter(
            f"the encode of {model} takes no batch_size.", param_hint="--batch-size"
        )
