"""Checks of the arguments of `train`, before a file is read."""

from __future__ import annotations

import numbers
import os
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from typing import Any, Literal

import keras

from use_st5.training.tasks import TaskSpec

_ROWS = "Rows are a DataFrame, an Arrow table or a list of dicts."
_TRAINER = "use_st5.training.Trainer takes your own objects (docs/training.md)."
# Advice for error messages, by the name of the argument.
_REMEDIES = {
    "model": "Give the name or folder it was loaded from, or TrainableEncoder(model, tokenizer).",
    "files": _ROWS,
    "validation": _ROWS,
    "test": _ROWS,
    "task": "Give one task for all files, or {file: task}.",
    "columns": "Give {key: the file's own name}, such as {'anchor': 'title'}.",
    "settings": "Give a paper's name, and other values as arguments, such as epochs=1.",
    "strategy": "Give its name: one, mirrored or tpu.",
    "log": "Give a function of one line, such as print, or leave it out.",
    "learning_rate": f"Give the peak: train adds warm-up and decay. {_TRAINER}",
    "schedule": f"Give its name, linear or constant. {_TRAINER}",
    "optimizer": f"Give its name, adam or adafactor. {_TRAINER}",
    "loss": "Give a TaskLoss, or arguments of the task's loss, such as {'temperature': 0.05}.",
    "teacher": "Give its name or folder, or a file of its vectors.",
    "freeze": "Give a tuple, such as ('embedding',).",
    "train_only": "Give 'embedding', or leave it out.",
    "matryoshka_dimensions": "Give a tuple of lengths, such as (64, 256).",
    "prompts": "Give texts by column, such as {'anchor': 'query: '}, or one text for all columns.",
    "score_range": "Give the lowest and the highest score, such as (0, 5).",
}
# Names of other libraries and of older versions, and the arguments that replace them.
_OTHER_NAMES = {
    "callback": "Give callbacks, a list.",
    "on_news": "Give log.",
    "dev": "Give validation.",
    **dict.fromkeys(("scheduler", "lr_scheduler"), _REMEDIES["learning_rate"]),
    **dict.fromkeys(("train_dataset", "dataset", "data", "rows", "train"), f"Give files. {_ROWS}"),
    **dict.fromkeys(("eval_dataset", "validation_data"), "Give files as validation."),
    **dict.fromkeys(("lr", "rate"), "Give learning_rate."),
    "batch": "Give batch_size.",
    "micro_batch": "Give micro_batch_size.",
    "max_tokens": "Give max_length.",
    "patience": "Give early_stopping_patience.",
    "matryoshka": "Give matryoshka_dimensions.",
    "head": "Give head_init, linear-probe or random.",
    "storage": "Give precision.",
}


def check_arguments(given: Mapping[str, Any]) -> None:
    """Checks the types of the arguments of `train`, by name, except those in its `**args`."""
    # It needs TensorFlow, and training under JAX does not.
    from use_st5.trainable_encoder import TrainableEncoder

    path = (str, os.PathLike)
    words = "a mapping of texts to texts"
    expected: dict[str, tuple[str, Callable[[Any], bool]]] = {
        "model": (
            "a name, a folder, a checkpoint, fresh:PRESET or a TrainableEncoder",
            lambda value: isinstance(value, (*path, TrainableEncoder)),
        ),
        **dict.fromkeys(
            ("files", "validation", "test"), ("a file's name, rows, or a list of these", _files)
        ),
        "to": ("a folder", lambda value: isinstance(value, path)),
        "task": (f"a task's name or {words}", lambda value: value is None or _words(value, str)),
        "columns": (words, lambda value: value is None or _words(value)),
        "settings": ("a name", lambda value: value is None or isinstance(value, str)),
        "overwrite": ("True or False", lambda value: isinstance(value, bool)),
        "strategy": ("a name", lambda value: value is None or isinstance(value, str)),
        "batch_files": ("a folder", lambda value: value is None or isinstance(value, path)),
        "tasks": ("a list of TaskSpec", lambda value: _all(value, TaskSpec)),
        "callbacks": (
            "a list of Keras callbacks",
            lambda value: _all(value, keras.callbacks.Callback),
        ),
        "log": ("a function", callable),
    }
    for name, (description, fits) in expected.items():
        if not fits(given[name]):
            raise _wrong_type(name, description, given[name])


def checked_arguments(given: Mapping[str, Any], kinds: Mapping[str, Any]) -> dict[str, Any]:
    """Checks the types of settings, and converts their numbers to Python's own, as records need.

    `kinds` has each setting's type, as `typing.get_type_hints` returns it. A value of another type
    raises a TypeError, an unknown argument a ValueError.
    """
    if unknown_names := sorted(set(given) - set(kinds)):
        hints = [f"{name}: {_OTHER_NAMES[name]}" for name in unknown_names if name in _OTHER_NAMES]
        message = f"Unknown arguments {unknown_names}. Known are: {', '.join(kinds)}."
        raise ValueError(" ".join([message, *hints]))
    arguments = {}
    for name, value in given.items():
        if isinstance(value, os.PathLike):
            value = os.fspath(value)
        check_type(name, value, kinds[name])
        arguments[name] = _plain(value)
    return arguments


def check_type(name: str, value: Any, kind: Any) -> None:
    """Refuses the value of an argument that is not of its type, a TypeError."""
    if not _fits(value, kind):
        raise _wrong_type(name, _expected(kind), value)


def _wrong_type(name: str, expected: str, value: Any) -> TypeError:
    # None, numbers and texts are shown themselves: they say more than their types do.
    value_text = repr(value) if value is None or isinstance(value, numbers.Number | str) else ""
    received = value_text[:60] or _kind_of(value)
    remedy = _REMEDIES.get(name, "")
    return TypeError(f"{name}: expected {expected}, received {received}. {remedy}".rstrip())


def _kind_of(value: Any) -> str:
    """Describes the type of a value in words."""
    name = type(value).__name__
    if isinstance(value, list | tuple) and value:
        return f"a {name} of {', '.join(dict.fromkeys(type(each).__name__ for each in value))}"
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def _files(value: Any) -> bool:
    return _file(value) or (isinstance(value, Sequence) and all(map(_file, value)))


def _file(value: Any) -> bool:
    """Whether a value is a name, or rows: a list of mappings, or a data set of a length."""
    if isinstance(value, str | os.PathLike):
        return True
    if isinstance(value, Sequence):
        return all(isinstance(each, Mapping) for each in value)
    return (
        isinstance(value, Sized) and isinstance(value, Iterable) and not isinstance(value, Mapping)
    )


def _all(value: Any, kind: type) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(each, kind) for each in value)


def _words(value: Any, *others: type) -> bool:
    if isinstance(value, Mapping):
        return all(isinstance(each, str) for pair in value.items() for each in pair)
    return isinstance(value, others)


def _fits(value: Any, kind: Any) -> bool:
    """Whether a value has a type; True and False do not count as numbers here."""
    origin, type_args = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        return any(_fits(value, each) for each in type_args)
    if origin is tuple:
        return isinstance(value, tuple | list) and all(_fits(each, type_args[0]) for each in value)
    if origin is Literal:
        return isinstance(value, str)
    number = {int: numbers.Integral, float: numbers.Real}.get(kind)
    if number is not None:
        return isinstance(value, number) and not isinstance(value, bool)
    try:
        return isinstance(value, origin or kind)
    except TypeError:  # No class: `Any`, or a protocol of a user's loss.
        return True


def _expected(kind: Any) -> str:
    """Describes a type in words."""
    origin, type_args = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        return " or ".join(_expected(each) for each in type_args)
    if origin is tuple:
        return f"a tuple, each {_expected(type_args[0])}"
    if origin is Literal:
        return " or ".join(type_args)
    words: dict[Any, str] = {
        int: "a whole number",
        float: "a number",
        str: "text",
        bool: "True or False",
    }
    words |= {type(None): "None", Mapping: "a mapping", Callable: "a function"}
    words |= {Sequence: "a list"}
    return words.get(origin or kind) or f"a {kind.__name__}"


def _plain(value: Any) -> Any:
    """Converts a value to Python's own types, because JSON cannot hold NumPy's numbers."""
    if isinstance(value, tuple | list):
        return tuple(_plain(each) for each in value)
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return value
    return int(value) if isinstance(value, numbers.Integral) else float(value)
