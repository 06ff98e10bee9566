"""Data sets as arrays on disk: texts become ids once, and training maps the files into memory.

A prepared folder holds one raw little-endian file `NAME.bin` per array and `prepared.json`: types,
shapes, the columns' settings and fingerprints of the vocabulary and of the tokenizer.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
import numpy as np
import pyarrow as pa

from use_st5.io.files import atomic_path, cached_path, exists, remote_path
from use_st5.io.lines import batched, in_threads
from use_st5.io.records import Positive, read_record

if TYPE_CHECKING:
    from use_st5.tokenizers.tokenizer import Tokenizer

KindName = Literal["ids", "token_ids", "label", "score", "vector"]
# A DataFrame, an Arrow table, an iterable of dicts (a Hugging Face `Dataset` is one), or a
# `tf.data.Dataset` of dicts.
Dataset = Any

# The names of the axes of a batch. 0 is padding in both kinds of ids: an encoder reads "ids", a
# decoder predicts "token_ids".
COLUMN_AXES: dict[KindName, tuple[str, ...]] = {
    "ids": ("batch", "length"),
    "token_ids": ("batch", "length"),
    "label": ("batch",),
    "score": ("batch",),
    "vector": ("batch", "width"),
}
TEXT_KINDS, FLOAT_KINDS = ("ids", "token_ids"), ("score", "vector")

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


@dataclasses.dataclass(frozen=True)
class PreparedColumn:
    """One array of a prepared data set.

    Attributes:
        kind: "ids": a text as encoder ids, int32 `[rows, length]`; "token_ids": a text as decoder
            targets, int32 `[rows, max_tokens]`; "label": int32 `[rows]`; "score": float32 `[rows]`;
            "vector": float32 `[rows, dim]`.
        max_tokens: Tokens of a text beyond this number are cut. The kinds of text need it; the
            others must not have it.
        key: The key of the example that holds the value; None: the array's own name.
    """

    kind: KindName
    max_tokens: int | None = None
    key: str | None = None

    def __post_init__(self) -> None:
        if self.kind not in COLUMN_AXES:
            raise ValueError(f"kind: expected one of {[*COLUMN_AXES]}, received {self.kind!r}.")
        fits = (self.max_tokens or 0) > 0 if self.kind in TEXT_KINDS else self.max_tokens is None
        if not fits:
            raise ValueError(
                "max_tokens: expected a number above 0 for ids, and None for other columns, "
                f"received {self.max_tokens} for {self.kind!r}."
            )

    @property
    def dtype(self) -> np.dtype:
        """The array's type on disk, little-endian."""
        return np.dtype("<f4" if self.kind in FLOAT_KINDS else "<i4")

    def array(self, values: list[Any], tokenizer: Tokenizer) -> np.ndarray:
        """The values of some rows as an array `[rows, …]`.

        Raises:
            ValueError: A value is not of the column's kind.
        """
        if self.kind in TEXT_KINDS:
            return self._ids(values, tokenizer)
        if self.kind == "vector":
            return _vectors(values, self.dtype)
        types = (int, np.integer) if self.kind == "label" else (int, float, np.number)
        for value in values:
            if not isinstance(value, types) or isinstance(value, bool) or not math.isfinite(value):
                number = "an int32 label" if self.kind == "label" else "a finite number"
                raise ValueError(f"expected {number}, received {value!r:.80}")
        return np.array(values, self.dtype)

    def _ids(self, values: list[Any], tokenizer: Tokenizer) -> np.ndarray:
        for value in values:
            if not isinstance(value, str):
                raise ValueError(f"expected text, received {type(value).__name__}: {value!r:.80}")
        to_ids: Callable[..., Any] = tokenizer.padded if self.kind == "ids" else tokenizer.token_ids
        ids = np.asarray(to_ids(values, self.max_tokens)).astype(self.dtype, copy=False)
        # The ids for an encoder may be only as wide as the longest of these texts.
        return np.pad(ids, [(0, 0), (0, max(0, (self.max_tokens or 0) - ids.shape[1]))])


def _vectors(values: list[Any], dtype: np.dtype) -> np.ndarray:
    vectors = [np.asarray(value) for value in values]
    first = vectors[0]
    for vector in vectors:
        if vector.ndim != 1 or vector.dtype.kind not in "fiu" or vector.shape != first.shape:
            raise ValueError(
                f"expected a numeric vector of shape {first.shape[:1]}, "
                f"received {vector.dtype} of shape {vector.shape}"
            )
    array = np.stack(vectors).astype(dtype)
    if not np.isfinite(array).all():
        raise ValueError("expected a vector of finite numbers, received NaN or infinity")
    return array


class _Array(msgspec.Struct):
    dtype: Literal["<i4", "<f4"]  # those of `PreparedColumn`
    shape: Annotated[list[Positive], msgspec.Meta(min_length=1, max_length=32)]


class _Header(msgspec.Struct):
    # The names become file names.
    arrays: dict[Annotated[str, msgspec.Meta(pattern=r"^\w+$")], _Array]
    settings: dict[str, dict[str, Any]]
    tokenizer: dict[str, Any]


def rows_of(dataset: Dataset) -> Iterator[dict[str, Any]]:
    """The rows of a data set one by one, as dicts."""
    if hasattr(dataset, "__arrow_c_stream__"):  # A DataFrame, or an Arrow table.
        for batch in pa.table(dataset).to_batches(max_chunksize=_CHUNK):
            yield from batch.to_pylist()
    elif hasattr(dataset, "as_numpy_iterator"):  # A `tf.data.Dataset`.
        for row in dataset.as_numpy_iterator():
            yield {key: _plain(value) for key, value in row.items()}
    elif isinstance(dataset, Iterable) and not isinstance(dataset, str | Mapping):
        yield from dataset
    else:
        raise ValueError(
            "Expected a data set: a DataFrame, an Arrow table, an iterable of dicts, or a "
            f"tf.data.Dataset. Received: {type(dataset).__name__}"
        )


def _plain(value: Any) -> Any:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def prepare(
    examples: Dataset,
    columns: Mapping[str, PreparedColumn],
    tokenizer: Tokenizer,
    folder: str | Path,
    *,
    reuse: bool = False,
) -> dict[str, np.memmap]:
    """Writes a data set as arrays into a new folder and opens it.

    Examples are taken as a stream, some thousand at a time, so that memory is bounded. The folder
    appears when it is complete, or not at all.

    Args:
        examples: A DataFrame, an Arrow table, an iterable of dicts (for example a reader), or a
            `tf.data.Dataset` of dicts; keys that no column names are left out.
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
        ValueError: There are no examples; an example lacks a key or a value is not of its column's
            kind (with the example's number); or as in `open_prepared`.
    """
    remote = remote_path(folder)
    folder = Path(folder)
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
        arrays = _write_arrays(rows_of(examples), columns, tokenizer, temporary)
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
            or another tokenizer.
    """
    folder = cached_path(folder)
    if not (folder / _HEADER).is_file():
        raise FileNotFoundError(
            f"{folder}: expected a folder of use_st5.data.prepare, found no {_HEADER} in it."
        )
    header = read_record(folder / _HEADER, _Header, remedy=_AGAIN, version=_FORMAT)
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
    graphs = functools.cache(lambda: _graphs(tokenizer))

    def arrays_of(numbered: tuple[int, list[Mapping[str, Any]]]) -> list[np.ndarray]:
        number, chunk = numbered
        to_ids = graphs() if number else tokenizer  # For few texts, tracing takes longer.
        arrays = []
        for name, column in columns.items():
            place = f"'{name}', examples {number * _CHUNK} to {number * _CHUNK + len(chunk) - 1}"
            try:
                values = [example[column.key or name] for example in chunk]
                arrays.append(column.array(values, to_ids))
            except KeyError as error:
                keys = next(sorted(example) for example in chunk if error.args[0] not in example)
                raise ValueError(
                    f"{place}: expected the key {error} in each example, found an example with "
                    f"{keys}. Name the right key with PreparedColumn(key=…)."
                ) from None
            except (OverflowError, ValueError) as error:
                raise ValueError(f"{place}: {error}") from error
        return arrays

    with ExitStack() as stack:
        paths = {name: folder / f"{name}.bin" for name in columns}
        files = {name: stack.enter_context(path.open("wb")) for name, path in paths.items()}
        for arrays in in_threads(arrays_of, enumerate(batched(examples, _CHUNK))):
            for name, array in zip(columns, arrays, strict=True):
                shape = row_shapes.setdefault(name, array.shape[1:])
                if array.shape[1:] != shape:
                    raise ValueError(
                        f"'{name}', from example {count} on: expected values of shape {shape}, "
                        f"received {array.shape[1:]}."
                    )
                files[name].write(np.ascontiguousarray(array).tobytes())
            count += len(arrays[0])
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

    def ids_by(name: str) -> Callable[[list[str], int], tf.Tensor]:
        return lambda texts, max_tokens: graph(name, max_tokens)(tf.constant(texts))

    return SimpleNamespace(padded=ids_by("padded"), token_ids=ids_by("token_ids"))


def _settings(columns: Mapping[str, PreparedColumn]) -> dict[str, dict[str, Any]]:
    return {
        name: dataclasses.asdict(column) | {"key": column.key or name}
        for name, column in columns.items()
    }


def _check_same(folder: Path, what: str, stored: dict[str, Any], given: dict[str, Any]) -> None:
    names = [key for key in {**stored, **given} if stored.get(key) != given.get(key)]
    if names:
        raise ValueError(
            f"{folder}: expected the {what} that made this folder, received another one (they "
            f"differ in {', '.join(names)}). Prepare the examples in another folder, or use the "
            f"{what} of this one."
        )


def _open_array(folder: Path, name: str, described: _Array) -> np.memmap:
    path = folder / f"{name}.bin"
    dtype, shape = np.dtype(described.dtype), tuple(described.shape)
    expected = dtype.itemsize * math.prod(shape)
    size = path.stat().st_size if path.is_file() else None
    if size != expected:
        raise ValueError(
            f"{path}: expected {expected} bytes for {dtype} of shape {shape}, "
            f"found {'no file' if size is None else f'{size} bytes'}. {_AGAIN}"
        )
    return np.memmap(path, dtype=dtype, mode="r", shape=shape)
