"""Data sets as arrays on disk, and their batches: texts become ids once, for the whole training.

A prepared folder holds one raw little-endian file `NAME.bin` per array and `prepared.json`: types,
shapes, the columns' settings and fingerprints of the vocabulary and of the tokenizer.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
_MEASURED_AT_ONCE = 2**16
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
        kind: "ids": a text as encoder ids, int32 `[rows, length]`, where all such columns have the
            length of the longest text; "token_ids": a text as decoder targets, int32 `[rows,
            max_tokens]`; "label": int32 `[rows]`; "score": float32 `[rows]`; "vector": float32
            `[rows, dim]`.
        max_tokens: Tokens of a text beyond this number are cut. The kinds of text need it; the
            others must not have it.
        key: The key of the example that holds the value; None: the array's own name.
    """

    kind: KindName
    max_tokens: int | None = None
    key: str | None = None

    def __post_init__(self) -> None:
        fits = (self.max_tokens or 0) > 0 if self.kind in TEXT_KINDS else self.max_tokens is None
        if self.kind not in COLUMN_AXES or not fits:
            raise ValueError(
                f"expected one of {[*COLUMN_AXES]}, with max_tokens above 0 for ids only, received "
                f"{self.kind!r} with max_tokens {self.max_tokens}."
            )

    @property
    def dtype(self) -> np.dtype:
        """The array's type on disk, little-endian."""
        return np.dtype("<f4" if self.kind in FLOAT_KINDS else "<i4")

    def array(self, values: list[Any], tokenizer: Tokenizer) -> np.ndarray:
        """The values of rows as an array `[rows, …]`; a ValueError if one is of another kind."""
        if self.kind in TEXT_KINDS:
            return self._ids(values, tokenizer)
        array = np.array(values)
        numbers = "iu" if self.kind == "label" else "iuf"
        axes = len(COLUMN_AXES[self.kind])
        if array.ndim != axes or array.dtype.kind not in numbers or not np.isfinite(array).all():
            expected = {"label": "int32 labels", "score": "finite numbers"}.get(self.kind)
            expected = expected or "vectors of finite numbers, all of one length"
            finite = (isinstance(v, int | float | np.number) and np.isfinite(v) for v in values)
            wrong = next((v for v, good in zip(values, finite, strict=True) if not good), values[0])
            raise ValueError(f"expected {expected}, received {wrong!r:.80}")
        if self.kind == "label" and np.abs(array).max() >= 2**31:
            raise ValueError(f"expected int32 labels, received {array.max()}")
        return array.astype(self.dtype)

    def _ids(self, values: list[Any], tokenizer: Tokenizer) -> np.ndarray:
        for value in values:
            if not isinstance(value, str):
                raise ValueError(f"expected text, received {type(value).__name__}: {value!r:.80}")
        to_ids: Callable[..., Any] = tokenizer.padded if self.kind == "ids" else tokenizer.token_ids
        ids = np.asarray(to_ids(values, self.max_tokens)).astype(self.dtype, copy=False)
        # Some tokenizers pad to `max_tokens`, others to the longest of these texts.
        filled = np.flatnonzero(ids.any(axis=0))
        return ids if self.kind == "token_ids" else ids[:, : 1 + filled.max(initial=0)]


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
        ValueError: An example lacks a key, or has a value of another kind; or as `open_prepared`.
    """
    if names := [name for name in columns if not name.isidentifier()]:
        raise ValueError(f"columns: expected identifiers, as file names, received {names}.")
    remote = remote_path(folder)
    folder = Path(folder)
    if exists(f"{remote}/{_HEADER}") if remote else folder.exists():
        if not reuse:
            raise FileExistsError(f"{folder} exists. Remove it, or pass reuse=True to use it.")
        return open_prepared(folder, columns=columns, tokenizer=tokenizer)
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
        ValueError: It is damaged, of another format, or was made with something else.
    """
    folder = cached_path(folder)
    header = read_record(folder / _HEADER, _Header, remedy=_AGAIN, version=_FORMAT)
    made = {"columns": header.settings, "tokenizer": header.tokenizer}
    given = {
        "columns": None if columns is None else _settings(columns),
        "tokenizer": None if tokenizer is None else fingerprint(tokenizer),
    }
    for what, facts in given.items():
        if facts is not None and facts != made[what]:
            names = [
                key for key in {**made[what], **facts} if made[what].get(key) != facts.get(key)
            ]
            raise ValueError(
                f"{folder}: expected the {what} that made this folder, received another one (they "
                f"differ in {', '.join(names)}). Prepare the examples in another folder."
            )
    arrays = {}
    for name, array in header.arrays.items():
        path, dtype, shape = folder / f"{name}.bin", np.dtype(array.dtype), tuple(array.shape)
        expected = dtype.itemsize * math.prod(shape)
        if path.stat().st_size != expected:
            raise ValueError(f"{path}: expected {expected} bytes for {dtype} of {shape}. {_AGAIN}")
        arrays[name] = np.memmap(path, dtype=dtype, mode="r", shape=shape)
    return arrays


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
    shapes: dict[str, list[tuple[int, ...]]] = {name: [] for name in columns}
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
                text = f"{place}: expected the key {error} in each example, received {keys}."
                raise ValueError(text) from None
            except ValueError as error:
                raise ValueError(f"{place}: {error}") from error
        return arrays

    with ExitStack() as stack:
        files = {name: stack.enter_context((folder / f"{name}.bin").open("wb")) for name in columns}
        for arrays in in_threads(arrays_of, enumerate(batched(examples, _CHUNK))):
            for name, array in zip(columns, arrays, strict=True):
                shapes[name].append(array.shape)
                shape = shapes[name][0][1:]
                if columns[name].kind != "ids" and array.shape[1:] != shape:
                    raise ValueError(f"{name!r}: expected {shape}, received {array.shape[1:]}.")
                files[name].write(np.ascontiguousarray(array).tobytes())
    count = sum(rows for rows, *_ in next(iter(shapes.values())))
    if not count:
        raise ValueError("examples: expected at least one, received none.")
    ids = [name for name, column in columns.items() if column.kind == "ids"]
    width = max((length for name in ids for _, length in shapes[name]), default=0)
    for name in ids:
        _pad_file(folder / f"{name}.bin", shapes[name], width)
        shapes[name] = [(count, width)]
    return {
        name: {"dtype": column.dtype.str, "shape": [count, *shapes[name][0][1:]]}
        for name, column in columns.items()
    }


def _pad_file(path: Path, shapes: Sequence[tuple[int, ...]], width: int) -> None:
    """Gives the ids in a file, int32 arrays of these shapes one after the other, one width."""
    padded = path.with_suffix(".padded")
    with path.open("rb") as file, padded.open("wb") as target:
        for rows, length in shapes:
            ids = np.fromfile(file, "<i4", rows * length).reshape(rows, length)
            target.write(np.pad(ids, [(0, 0), (0, width - length)]).tobytes())
    padded.replace(path)


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


def check_shared(batch_size: int, **parts: int) -> None:
    """Refuses a batch size that cannot be divided into equal parts, such as `replicas=2`."""
    if batch_size % math.prod(parts.values()):
        product = " x ".join(f"{number} {kind}" for kind, number in parts.items())
        raise ValueError(f"batch_size: expected a multiple of {product}, received {batch_size}.")


def fitting_batch_size(wanted: int, rows: int, **parts: int) -> int:
    """The number of examples in a step: `wanted`, or fewer if the data set is smaller."""
    check_shared(wanted, **parts)
    divisor = math.prod(parts.values())
    if rows < divisor:
        raise ValueError(f"Expected at least {divisor} rows, one for each part. Received: {rows}")
    return min(wanted, rows // divisor * divisor)


def row_lengths(ids: np.ndarray) -> np.ndarray:
    """The number of ids before the padding of each row: `[rows, length]` → int `[rows]`."""
    return ((ids != 0) * np.arange(1, ids.shape[1] + 1)).max(axis=1, initial=0)


class ArrayData:
    """Equal-length arrays (or memory maps) as an endless, shuffled, resumable stream of batches.

    Batch k depends only on the arrays, the batch size, the seed and k: each epoch is a new
    permutation drawn from (seed, epoch). Examples at its end that do not fill a batch are left for
    another epoch. A resumed run can therefore start at any step at no cost.

    Args:
        arrays: `[examples, …]` arrays by feature name, numeric, all of one length.
        group_size: Number of consecutive examples that form a group and stay together, for losses
            that compare the examples of a batch.
        buckets: Widths of batches, ascending. A batch then has texts of similar lengths ("smart
            batching"). Its ids, which are all integer arrays `[examples, length]`, are cut to the
            smallest of these widths that holds them; a compiler makes a program for each width.
            Batches of all widths come in mixed order.
    """

    def __init__(
        self,
        arrays: Mapping[str, np.ndarray],
        *,
        group_size: int = 1,
        buckets: Sequence[int] = (),
    ) -> None:
        lengths = {name: len(array) for name, array in arrays.items()}
        if len(set(lengths.values())) != 1 or 0 in lengths.values():
            raise ValueError(f"Expected arrays of one length above 0, received lengths {lengths}.")
        self.arrays = dict(arrays)
        self.size = next(iter(lengths.values()))
        if group_size < 1 or self.size % group_size:
            raise ValueError(f"group_size: expected a part of {self.size}, received {group_size}.")
        self.group_size = group_size
        self.buckets = tuple(buckets)
        self._ids = [
            n for n, each in self.arrays.items() if each.ndim == 2 and each.dtype.kind == "i"
        ]
        self._bucket_of = self._buckets_of_rows() if buckets else None
        self._epoch: tuple[tuple[int, int, int], np.ndarray] | None = None

    def __len__(self) -> int:
        """The number of examples."""
        return self.size

    def batch(
        self, step: int, batch_size: int, seed: int, *, part: np.ndarray | None = None
    ) -> dict[str, np.ndarray]:
        """The arrays of batch `step` by name, `[batch_size, …]`.

        A part of a batch has the width of the whole batch: replicas gather ids from each other.

        Args:
            step: The number of the batch.
            batch_size: Examples of the whole batch.
            seed: The seed of the shuffling.
            part: Positions in the batch whose examples are taken, in this order; None: all.
        """
        rows = self.rows(step, batch_size, seed)
        return self.take(rows if part is None else rows[part], batch=rows)

    def take(self, rows: np.ndarray, *, batch: np.ndarray | None = None) -> dict[str, np.ndarray]:
        """The arrays of some examples by name, `[len(rows), …]`, in the order of the rows.

        If there are buckets, ids are cut to the width that holds all texts of the `batch`.
        """
        columns = {name: array[rows] for name, array in self.arrays.items()}
        if self._bucket_of is not None:
            batch_rows = rows if batch is None else batch
            width = self.buckets[self._bucket_of[batch_rows].max()]
            columns |= {name: columns[name][:, :width] for name in self._ids}
        return {name: np.ascontiguousarray(array) for name, array in columns.items()}

    def row_shape(self, name: str, *, width: int | None = None) -> tuple[int | None, ...]:
        """The shape of an example in an array; the width of ids in buckets is `width`, or None."""
        shape = self.arrays[name].shape[1:]
        if not self.buckets or name not in self._ids:
            return shape
        return (None if width is None else min(width, *shape),)

    def fingerprint(self, names: Sequence[str]) -> str:
        """SHA-256 of some arrays, the group size and the buckets; takes a second for a gigabyte."""
        digest = hashlib.sha256()
        settings = [self.group_size, list(self.buckets)]
        kinds = {name: [self.arrays[name].dtype.str, self.arrays[name].shape] for name in names}
        digest.update(json.dumps([settings, kinds]).encode())
        for array in (self.arrays[name] for name in names):
            for start in range(0, self.size, _MEASURED_AT_ONCE):
                digest.update(array[start : start + _MEASURED_AT_ONCE].tobytes())
        return digest.hexdigest()

    def rows(self, step: int, batch_size: int, seed: int) -> np.ndarray:
        """The positions of the examples of batch `step`, int `[batch_size]`."""
        epoch, batch = divmod(step, self.size // batch_size)
        order = self._order(batch_size, seed, epoch)
        return order[batch * batch_size : (batch + 1) * batch_size]

    def check_batch(self, batch_size: int, *, parts: int = 1) -> None:
        """Checks that batches of a size can be made, and cut into a number of equal parts."""
        unit = math.lcm(self.group_size, parts)
        if not 0 < batch_size <= self.size or batch_size % unit:
            wanted = f"expected a multiple of {unit} up to {self.size}"
            raise ValueError(f"batch_size: {wanted}, received {batch_size}.")

    def _order(self, batch_size: int, seed: int, epoch: int) -> np.ndarray:
        """The positions of the examples of an epoch's batches, one after the other."""
        # One tuple, read and replaced as a whole: two data sets may call from different threads.
        entry, key = self._epoch, (batch_size, seed, epoch)
        if entry is None or entry[0] != key:
            dtype = np.dtype(np.int32 if self.size < 2**31 else np.int64)
            groups = np.arange(0, self.size, self.group_size, dtype=dtype)
            generator = np.random.default_rng([seed, epoch])
            groups = generator.permutation(groups)
            order = (groups[:, None] + np.arange(self.group_size, dtype=dtype)).ravel()
            if self._bucket_of is not None:
                order = order[: self.size // batch_size * batch_size]
                by_bucket = order[np.argsort(self._bucket_of[order], kind="stable")]
                order = generator.permutation(by_bucket.reshape(-1, batch_size)).reshape(-1)
            entry = self._epoch = (key, order)
        return entry[1]

    def _buckets_of_rows(self) -> np.ndarray:
        """The position of the bucket that holds each example's longest text, `[examples]`."""
        lengths = np.zeros(self.size, np.int32)
        for start in range(0, self.size, _MEASURED_AT_ONCE):
            rows = slice(start, start + _MEASURED_AT_ONCE)
            for ids in (self.arrays[name][rows] for name in self._ids):
                lengths[rows] = np.maximum(lengths[rows], row_lengths(ids))
        widths = list(self.buckets)
        grouped = self.group_size > 1
        if grouped or widths != sorted({*widths}) or widths[0] < 1 or lengths.max() > widths[-1]:
            wanted = f"expected ascending widths up to {lengths.max()} ids, and no groups"
            raise ValueError(f"buckets: {wanted}, received {widths}.")
        return np.searchsorted(widths, lengths).astype(np.int16)
