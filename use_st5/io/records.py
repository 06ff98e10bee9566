"""Records in JSON, read into types, with errors of one line."""

from __future__ import annotations

import contextlib
import json
import os
import re
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, TypeVar

import msgspec

from use_st5.io.inner_path import is_inner
from use_st5.io.remote_files import as_written, open_local

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
_SHOWN = 200  # characters of a value
_STEP = re.compile(r"\.(\w+)|\[([^]]+)\]")  # of the path to a field

_LISTED = "expected one of the listed values"
# A message of msgspec → the same message in the form "expected …, received …".
_SPOKEN = (
    (r"Expected (.*), got (.*)", r"expected \1, received \2"),
    (r"Object missing required field (.*)", r"expected the field \1, received none of this name"),
    (r"Object contains unknown field (.*)", r"expected no other fields, received \1"),
    (r"Invalid enum value (.*)", rf"{_LISTED}, received \1"),
    (r"(Number|Integer value) out of range", "expected a number, received one out of range"),
    (r"JSON is malformed: (.*)", r"expected JSON, received another text: \1"),
    (r"Input data was truncated", "expected JSON, received a text that ends too early"),
    (r"(.*)", r"expected JSON, received another text: \1"),
)


class InnerPath(str):
    """A path with "/" to a file in the folder of the record that names it, or in one below."""

    __slots__ = ()

    @classmethod
    def checked(cls, text: Any) -> InnerPath:
        """Returns the text as a path.

        Raises:
            ValueError: It is no text, is absolute on some system, or leads out of the folder.
        """
        if isinstance(text, str) and is_inner(text):
            return cls(text)
        raise ValueError(f"Expected a path inside the folder of this file, got {text!r}")


def read_record(
    path: str | os.PathLike[str],
    kind: type[Kind],
    *,
    remedy: str,
    version: int | None = None,
    limit: int = LIMIT,
    not_finite: bool = False,
    renamed: Mapping[str, str] = types.MappingProxyType({}),
) -> Kind:
    """Reads a JSON file into a type.

    Args:
        path: The file.
        kind: A dataclass, a `msgspec.Struct`, or any other type that msgspec knows. Fields that it
            does not have are not looked at, unless it forbids them.
        remedy: A sentence that says what to do about a file with another content.
        version: The required value of the record's field `format`; None: it has no such field.
        limit: Files with more bytes are refused before they are read.
        not_finite: Whether NaN and infinities, as Python writes them, are numbers too.
        renamed: Fields of the outermost object that may have an older name: old name → new name.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It has another content. The message names the file, the field (`$` is the whole
            record), what was expected, what was received, and the remedy.
    """
    content = read_bounded(path, limit=limit, remedy=remedy)
    where = as_written(path)
    if version is not None:
        value = parse_record(content, _Versioned, where=where, remedy=remedy).format
        if value > version:
            raise ValueError(
                f"{where}: $.format: expected {version}, received {value}: a newer version of "
                "use_st5 wrote it. Update use_st5."
            )
        if value != version:
            raise ValueError(f"{where}: $.format: expected {version}, received {value}. {remedy}")
    if renamed:
        fields = parse_record(content, dict[str, msgspec.Raw], where=where, remedy=remedy)
        content = msgspec.json.encode({renamed.get(name, name): fields[name] for name in fields})
    return parse_record(content, kind, where=where, remedy=remedy, not_finite=not_finite)


def parse_record(
    content: bytes | str, kind: type[Kind], *, where: str, remedy: str, not_finite: bool = False
) -> Kind:
    """Does the same for JSON in memory; `where` says where it comes from."""
    with _spoken_errors(where, remedy, kind, lambda: json.loads(content)):
        if not_finite:
            return msgspec.convert(json.loads(content), kind, dec_hook=_custom)
        return msgspec.json.decode(content, type=kind, dec_hook=_custom)


def check_record(value: Any, kind: type[Kind], *, where: str, remedy: str) -> Kind:
    """Does the same for a part of a record whose type is known only after the rest was read."""
    with _spoken_errors(where, remedy, kind, lambda: value):
        return msgspec.convert(value, kind, dec_hook=_custom)


def read_bounded(path: str | os.PathLike[str], *, limit: int, remedy: str) -> bytes:
    """The bytes of a file that is known to be small.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It is larger than `limit` bytes.
    """
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
def _spoken_errors(where: str, remedy: str, kind: Any, record: Callable[[], Any]) -> Iterator[None]:
    """Turns errors of the block, which reads `record`, into one line that begins with `where`."""
    try:
        yield
    except RecursionError as error:
        raise ValueError(
            f"{where}: $: expected a record, received JSON that is nested too deeply. {remedy}"
        ) from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{where}: $: expected UTF-8, received other bytes. {remedy}") from error
    except ValueError as error:
        raise ValueError(f"{where}: {_spoken(str(error), kind, record)}. {remedy}") from error


class _Versioned(msgspec.Struct):
    format: int


def _custom(kind: type, value: Any) -> Any:
    if kind is InnerPath:
        return InnerPath.checked(value)
    raise TypeError(f"msgspec knows no {kind}")


def _spoken(message: str, kind: Any, record: Callable[[], Any]) -> str:
    """A message of msgspec as `FIELD: expected …, received …`."""
    message, _, field = message.replace("`", "").partition(" - at ")
    of_a_key = field.startswith("key in ")
    if message.startswith("Expected ") and ", got " not in message:
        message += f", got {'another' if of_a_key else _value(record, field)}"
    field = field.removeprefix("key in ")
    for pattern, template in _SPOKEN:
        if found := re.fullmatch(pattern, message, re.DOTALL):
            message = found.expand(template)
            break
    expected, received, value = message.partition(", received ")
    if expected == _LISTED:
        expected = f"expected {_choices(kind, field)}"
    return f"{_cut(field) or '$'}: {expected}{received}{_cut(value)}"


def _value(record: Callable[[], Any], field: str) -> str:
    """Returns the value of a field; msgspec does not name a value that is out of range."""
    with contextlib.suppress(ValueError, LookupError, TypeError, RecursionError):
        value = record()
        for name, index in _STEP.findall(field):
            value = value[name or int(index)]
        return json.dumps(value)
    return "another"  # msgspec calls every value of a dictionary `[...]`.


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _choices(kind: Any, field: str) -> str:
    """The values that a field may have, as its type lists them."""
    found: Any = msgspec.inspect.type_info(kind)
    for name, _ in _STEP.findall(field):
        options = getattr(found, "types", (found,))
        fields = (each for option in options for each in getattr(option, "fields", ()))
        items = (
            getattr(each, role, None) for each in options for role in ("item_type", "value_type")
        )
        same_name = (each.type for each in fields if each.encode_name == name)
        found = next(same_name if name else filter(None, items), None)
    literals = getattr(found, "types", (found,))
    values = [value for each in literals for value in getattr(each, "values", (None,))]
    return " or ".join(map(repr, values))
