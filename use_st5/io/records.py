"""Records in JSON, read into types, with errors of one line."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from typing import Annotated, Any, TypeVar

import msgspec

from use_st5.io.files import as_written, is_inner, open_local

Kind = TypeVar("Kind")

# No size, count or dimension is larger: NumPy and TensorFlow count in int64.
Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Positive = Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)]
# The ranges of a model's settings, with room beyond those of any published model.
Tokens = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]
Rate = Annotated[float, msgspec.Meta(ge=0, lt=1)]
Epsilon = Annotated[float, msgspec.Meta(gt=0, le=0.01)]
RotaryBase = Annotated[float, msgspec.Meta(ge=1, le=1e9)]

LIMIT = 2**20
_SHOWN = 300  # characters of an error's message


class InnerPath(str):
    """A path with "/" to a file in the folder of the record that names it, or in one below."""

    __slots__ = ()


def read_record(
    path: str | os.PathLike[str],
    kind: type[Kind],
    *,
    remedy: str,
    version: int | None = None,
    limit: int = LIMIT,
    not_finite: bool = False,
) -> Kind:
    """Reads a JSON file into a type.

    Args:
        path: The file.
        kind: A dataclass, a `msgspec.Struct`, or any other type that msgspec knows.
        remedy: A sentence that says what to do about a file with another content.
        version: The required value of the record's field `format`; None: it has no such field.
        limit: The most bytes of the file.
        not_finite: Whether NaN and infinities, as Python writes them, are numbers too.

    A ValueError names the file, the field (`$` is the whole record), what is wrong, and the remedy.
    """
    content = read_bounded(path, limit=limit, remedy=remedy)
    where = as_written(path)
    if version is not None:
        value = parse_record(content, _Versioned, where=where, remedy=remedy).format
        if value != version:
            newer = ": a newer version of use_st5 wrote it. Update use_st5."
            said = newer if value > version else f". {remedy}"
            raise ValueError(f"{where}: $.format: expected {version}, received {value}{said}")
    return parse_record(content, kind, where=where, remedy=remedy, not_finite=not_finite)


def parse_record(
    content: bytes | str, kind: type[Kind], *, where: str, remedy: str, not_finite: bool = False
) -> Kind:
    """Does the same for JSON in memory; `where` says where it comes from."""
    with _one_line_errors(where, remedy):
        text = content if isinstance(content, str) else content.decode()  # msgspec's errors vary
        if not_finite:
            return msgspec.convert(json.loads(text), kind, dec_hook=_custom)
        return msgspec.json.decode(text, type=kind, dec_hook=_custom)


def check_record(value: Any, kind: type[Kind], *, where: str, remedy: str) -> Kind:
    """Does the same for a part of a record whose type is known only after the rest was read."""
    with _one_line_errors(where, remedy):
        return msgspec.convert(value, kind, dec_hook=_custom)


def read_bounded(path: str | os.PathLike[str], *, limit: int, remedy: str) -> bytes:
    """The bytes of a file, which may have up to `limit` bytes."""
    where = as_written(path)
    with open_local(path) as local:
        if not local.is_file():
            raise FileNotFoundError(f"{where}: expected a file, found none. {remedy}")
        size = local.stat().st_size
        with local.open("rb") as file:
            content = file.read(limit + 1) if size <= limit else None
    if content is None or len(content) > limit:
        raise ValueError(f"{where}: expected up to {limit:,} bytes, received {size:,}. {remedy}")
    return content


@contextlib.contextmanager
def named_errors(where: str | os.PathLike[str], remedy: str = "") -> Iterator[None]:
    """Puts the name of a file before a `ValueError` of the block, and a remedy after it."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{as_written(where)}: {error} {remedy}".rstrip()) from error


@contextlib.contextmanager
def _one_line_errors(where: str, remedy: str) -> Iterator[None]:
    """Turns the errors of msgspec into one line: the file, the field, what is wrong, the remedy."""
    try:
        yield
    except RecursionError as error:
        raise ValueError(f"{where}: $: expected less deeply nested JSON. {remedy}") from error
    except ValueError as error:
        message, _, field = str(error).replace("`", "").partition(" - at ")
        message = " ".join(message.split())[:_SHOWN].replace(", got ", ", received ")
        if message.startswith(("JSON is", "Input data", "'utf-8' codec")):
            message = f"expected JSON: {message}"
        field = field.removeprefix("key in ")[:_SHOWN] or "$"
        message = message[:1].lower() + message[1:]
        raise ValueError(f"{where}: {field}: {message}. {remedy}") from error


class _Versioned(msgspec.Struct):
    format: int


def _custom(kind: type, value: Any) -> Any:
    if kind is not InnerPath or not isinstance(value, str) or not is_inner(value):
        raise ValueError(f"Expected a path inside the folder of this file, got {value!r}")
    return InnerPath(value)
