"""Examples as arrays on disk: texts become ids once, and training maps the files into memory.

A prepared folder holds one raw little-endian file `NAME.bin` per array and `prepared.json`: types,
shapes, the columns' settings and fingerprints of the vocabulary and of the tokenizer.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, Literal

import msgspec
import numpy as np

from use_st5.data.prepared_column import PreparedColumn
from use_st5.io.files import atomic_path
from use_st5.io.records import Positive, read_record
from use_st5.io.remote_files import cached_path, exists, remote_path
from use_st5.io.streams import batched, in_threads

if TYPE_CHECKING:
    from use_st5.tokenizers.tokenizer import Tokenizer

_FORMAT = 1
# The number of examples that are in memory, and become ids, at once.
_CHUNK = 4096
_HEADER = "prepared.json"
_AGAIN = "Prepare the examples again."
# The tokenizer's ids of these texts show whether it has changed. They contain words, a repeated
# word, an unknown word, punctuation, contractions, numbers and other scripts; one text is empty.
_PROBE = [
    "The cat sat on the mat, and the dog didn't.",
    'He said: "It costs $3.50 -- isn\'t that 1,000 too many...?"',
    "Zyxwvut é 東京 🙂 e-mail@example.org",
    "",
]


class _Array(msgspec.Struct):
    dtype: Literal["<i4", "<f4"]  # those of `PreparedColumn`
    shape: Annotated[list[Positive], msgspec.Meta(min_length=1, max_length=32)]


class _Header(msgspec.Struct):
    # The names become file names.
    arrays: dict[Annotated[str, msgspec.Meta(pattern=r"^\w+$")], _Array]
    settings: dict[str, dict[str, Any]]
    tokenizer: dict[str, Any]


def prepare(
    examples: Iterable[Mapping[str, Any]],
    columns: Mapping[str, PreparedColumn],
    tokenizer: Tokenizer,
    folder: str | Path,
    *,
    reuse: bool = False,
) -> dict[str, np.memmap]:
    """Writes examples as arrays into a new folder and opens it.

    Examples are taken as a stream, some thousand at a time, so that memory is bounded. The folder
    appears when it is complete, or not at all.

    Args:
        examples: Dicts, for example from a reader; keys that no column names are left out.
        columns: Array name → column.
        tokenizer: Turns texts into ids.
        folder: The folder to write; parent folders are created. It may be remote (gs:// and the
            like); then the maps are those of a local copy.
        reuse: Whether an existing folder that was made with the same columns, vocabulary and
            tokenizer is opened instead; then the examples are not read.

    Returns:
        Array name → read-only memory map `[rows, …]`.

    Raises:
        FileExistsError: The folder exists and `reuse` is False.
        ValueError: No columns or no examples; an example lacks a key or a value is not of its
            column's kind (with the example's number); or as in `open_prepared`.
    """
    remote = remote_path(folder)
    folder = Path(folder)
    if not columns:
        raise ValueError("columns: expected at least one array name → column, received none.")
    if bad_names := [name for name in columns if not name.isidentifier()]:
        raise ValueError(
            f"columns: names become file names; expected identifiers, received {bad_names}."
        )
    if exists(f"{remote}/{_HEADER}") if remote else folder.exists():
        if reuse:
            return open_prepared(folder, columns=columns, tokenizer=tokenizer)
        raise FileExistsError(
            f"{folder}: expected no such folder, found one. Remove it, or pass reuse=True to use "
            "its arrays."
        )
    with atomic_path(folder) as temporary:
        temporary.mkdir()
        arrays = _write_arrays(examples, columns, tokenizer, temporary)
        header = {
            "format": _FORMAT,
            "arrays": arrays,
            "settings": _settings(columns),
            "tokenizer": fingerprint(tokenizer),
        }
        text = json.dumps(header, indent=2, ensure_ascii=False) + "\n"
        (temporary / _HEADER).write_text(text, encoding="utf-8")
    return open_prepared(folder)


def open_prepared(
    folder: str | Path,
    *,
    columns: Mapping[str, PreparedColumn] | None = None,
    tokenizer: Tokenizer | None = None,
) -> dict[str, np.memmap]:
    """Maps the arrays of a prepared folder into memory.

    Args:
        folder: A folder that `prepare` wrote.
        columns: If given, the folder must have been made with the same.
        tokenizer: If given, the folder must have been made with the same vocabulary and with a
            tokenizer that gives the same ids.

    Returns:
        Array name → read-only memory map `[rows, …]`.

    Raises:
        FileNotFoundError: There is no prepared folder.
        ValueError: It is damaged, of another format, or made with other columns, another vocabulary
            or another tokenizer; the message lists both sides.
    """
    folder = cached_path(folder)
    header = _read_header(folder)
    if columns is not None:
        _check_same(folder, "columns", header.settings, _settings(columns))
    if tokenizer is not None:
        _check_same(folder, "tokenizer", header.tokenizer, fingerprint(tokenizer))
    return {name: _open_array(folder, name, each) for name, each in header.arrays.items()}


def fingerprint(tokenizer: Tokenizer) -> dict[str, Any]:
    """A record that differs between tokenizers with different ids.

    Returns:
        "vocabulary": SHA-256 over all fields of `tokenizer.vocabulary`; "sizes": the numbers
        among them, and the lengths of its lists; "ids": SHA-256 over the ids of four fixed
        sentences, which changes when tokenization does.
    """
    fields = {
        field.name: getattr(tokenizer.vocabulary, field.name)
        for field in dataclasses.fields(tokenizer.vocabulary)
    }
    text = json.dumps(fields, sort_keys=True, ensure_ascii=False)
    ids = hashlib.sha256()
    for values in (tokenizer.padded(_PROBE, 32), tokenizer.token_ids(_PROBE, 32)):
        ids.update(np.asarray(values).astype("<i4").tobytes())
    return {
        "vocabulary": hashlib.sha256(text.encode()).hexdigest(),
        "sizes": {
            name: value if isinstance(value, int) else len(value) for name, value in fields.items()
        },
        "ids": ids.hexdigest(),
    }


def _write_arrays(
    examples: Iterable[Mapping[str, Any]],
    columns: Mapping[str, PreparedColumn],
    tokenizer: Tokenizer,
    folder: Path,
) -> dict[str, dict[str, Any]]:
    """Appends chunk after chunk to the arrays' files; returns their types and shapes."""
    row_shapes: dict[str, tuple[int, ...]] = {}
    count = 0
    with ExitStack() as stack:
        files = {
            name: stack.enter_context(_array_path(folder, name).open("wb")) for name in columns
        }
        chunks = enumerate(batched(examples, _CHUNK))
        graphs = functools.cache(lambda: _graphs(tokenizer))

        def arrays_of(
            numbered: tuple[int, list[Mapping[str, Any]]],
        ) -> tuple[int, list[np.ndarray]]:
            number, chunk = numbered
            first = number * _CHUNK
            span = f"examples {first} to {first + len(chunk) - 1}"
            to_ids = graphs() if number else tokenizer  # For few texts, tracing takes longer.
            arrays = [
                _array(chunk, name, column, to_ids, f"'{name}', {span}")
                for name, column in columns.items()
            ]
            return len(chunk), arrays

        for size, arrays in in_threads(arrays_of, chunks):
            for name, array in zip(columns, arrays, strict=True):
                shape = row_shapes.setdefault(name, array.shape[1:])
                if array.shape != (size, *shape):
                    raise ValueError(
                        f"'{name}', examples {count} to {count + size - 1}: expected an array of "
                        f"shape {(size, *shape)}, received {array.shape}."
                    )
                _append(files[name], array)
            count += size
    if not count:
        raise ValueError("examples: expected at least one, received none.")
    return {
        name: {"dtype": column.dtype.str, "shape": [count, *row_shapes[name]]}
        for name, column in columns.items()
    }


def _graphs(tokenizer: Tokenizer) -> Any:
    """Lets a TensorFlow tokenizer run as graphs, in half the time of eager; others stay as is."""
    import tensorflow as tf

    if not isinstance(tokenizer, tf.Module):
        return tokenizer

    @functools.cache
    def graph(name: str, max_tokens: int) -> Callable[[tf.Tensor], tf.Tensor]:
        function = getattr(tokenizer, name)
        return tf.function(
            lambda texts: function(texts, max_tokens),
            input_signature=[tf.TensorSpec([None], tf.string)],
        )

    def ids_of(name: str) -> Callable[[list[str], int], tf.Tensor]:
        return lambda texts, max_tokens: graph(name, max_tokens)(tf.constant(texts))

    return SimpleNamespace(padded=ids_of("padded"), token_ids=ids_of("token_ids"))


def _array(
    chunk: list[Mapping[str, Any]],
    name: str,
    column: PreparedColumn,
    tokenizer: Any,
    place: str,
) -> np.ndarray:
    key = column.key or name
    try:
        values = [example[key] for example in chunk]
    except KeyError:
        keys = next(sorted(example) for example in chunk if key not in example)
        raise ValueError(
            f"{place}: expected the key {key!r} in each example, found an example with {keys}. "
            "Name the right key with PreparedColumn(key=…)."
        ) from None
    try:
        return column.array(values, tokenizer)
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from error


def _append(file: BinaryIO, array: np.ndarray) -> None:
    file.write(np.ascontiguousarray(array).tobytes())


def _array_path(folder: Path, name: str) -> Path:
    return folder / f"{name}.bin"


def _settings(columns: Mapping[str, PreparedColumn]) -> dict[str, dict[str, Any]]:
    return {
        name: dataclasses.asdict(column) | {"key": column.key or name}
        for name, column in columns.items()
    }


def _read_header(folder: Path) -> _Header:
    path = folder / _HEADER
    if not path.is_file():
        raise FileNotFoundError(
            f"{folder}: expected a folder of use_st5.data.prepare, found no {_HEADER} in it."
        )
    return read_record(path, _Header, remedy=_AGAIN, version=_FORMAT)


def _check_same(folder: Path, what: str, found: dict[str, Any], wanted: dict[str, Any]) -> None:
    if found == wanted:
        return
    names = [key for key in {**found, **wanted} if found.get(key) != wanted.get(key)]
    raise ValueError(
        f"{folder}: expected the {what} that made this folder, received another one (they differ "
        f"in {', '.join(names)}).\n"
        f"  expected: {json.dumps(found, ensure_ascii=False)}\n"
        f"  received: {json.dumps(wanted, ensure_ascii=False)}\n"
        f"Prepare the examples in another folder, or use the {what} of this one."
    )


def _open_array(folder: Path, name: str, described: _Array) -> np.memmap:
    path = _array_path(folder, name)
    dtype, shape = np.dtype(described.dtype), tuple(described.shape)
    expected = dtype.itemsize * math.prod(shape)
    size = path.stat().st_size if path.is_file() else None
    if size != expected:
        raise ValueError(
            f"{path}: expected {expected} bytes for {dtype} of shape {shape}, "
            f"found {'no file' if size is None else f'{size} bytes'}. {_AGAIN}"
        )
    return np.memmap(path, dtype=dtype, mode="r", shape=shape)
