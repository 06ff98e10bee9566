"""The weights of a SavedModel by the names of their layers, read without TensorFlow.

`variables/variables.index` is a table of LevelDB: sorted keys, each with a `BundleEntryProto` that
says where a tensor lies in `variables/variables.data-*`. The formats are those of
`tensorflow/core/util/tensor_bundle`, `tensorflow/core/lib/io/table_format.txt` and
`tensorflow/core/protobuf/{tensor_bundle,trackable_object_graph}.proto`.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

# How the names of weights end that each layer has.
_OF_LAYERS = ("/kernel", "/kernel_codes", "/gamma", "/scale")
_APART = "use_st5.json and the variables do not belong together. Export the model again."


class Table(NamedTuple):
    """A token table.

    Attributes:
        codes: float32 or int8 `[rows, dim]`.
        scales: float32 `[rows]` for int8 codes; None for float32.
    """

    codes: np.ndarray
    scales: np.ndarray | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and width."""
        return self.codes.shape


class TableRows(threading.local):
    """Reads rows of a table into arrays that each thread reuses: new ones cost page faults."""

    def __init__(self, table: Table, most: int) -> None:
        self.table = table
        self._codes = np.empty((most, table.shape[1]), table.codes.dtype)
        self._rows = self._codes
        self._scales = np.ones(most, np.float32)
        if table.scales is not None:
            self._rows = np.empty(self._codes.shape, np.float32)

    def __call__(self, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows without their scales, float32 `[ids, dim]`, and the scales, float32 `[ids]`.

        Both are overwritten by the next call.
        """
        rows, scales = self._rows[: len(ids)], self._scales[: len(ids)]
        # Ids are below the number of rows: `take` need not check them.
        codes = self.table.codes.take(ids, 0, out=self._codes[: len(ids)], mode="clip")
        if self.table.scales is not None:
            np.copyto(rows, codes)
            self.table.scales.take(ids, out=scales, mode="clip")
        return rows, scales


class Weights:
    """Finds the weights of a model by name and shape."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._bundle = folder, Bundle(folder)
        # The first part of a path is the name of the model.
        self._keys = {
            path.partition("/")[2]: key for key, path in self._bundle.names.items() if "/" in path
        }
        self._unread = {name for name in self._keys if name.endswith(_OF_LAYERS)}

    def __call__(self, name: str, shape: tuple[int, ...]) -> np.ndarray:
        """The weight of a name, in float32."""
        self._unread -= {name, f"{name}_codes"}
        if f"{name}_codes" in self._keys:
            codes = self._bundle.array(self._keys[f"{name}_codes"])
            scales = self._bundle.array(self._keys[f"{name}_scales"])
            weight = codes.astype(np.float32) * scales
        elif name in self._keys:
            weight = np.array(self._bundle.array(self._keys[name]))
        else:
            raise ValueError(f"{self._folder}: there is no weight {name}: {_APART}")
        return self._checked(name, weight, shape)

    def table(self) -> Table:
        """The token table."""
        if "table_codes" in self._bundle.names:
            codes = np.asarray(self._bundle.array("table_codes"))
            scales = np.array(self._bundle.array("table_scales"))
            return Table(codes, self._checked("table_scales", scales, codes.shape[:1]))
        key = self._keys.get("embedding/embeddings", "table")
        embeddings = np.asarray(self._bundle.array(key))
        return Table(self._checked("embedding", embeddings, embeddings.shape))

    def check_all_read(self) -> None:
        """Refuses variables with layers that were not read: the vectors would be wrong."""
        if self._unread:
            raise ValueError(f"{self._folder}: no layer has {min(self._unread)}: {_APART}")

    def _checked(self, name: str, values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        check_shape(self._folder, name, values.shape, shape)
        if not np.isfinite(values).all():
            raise ValueError(f"{self._folder}: {name} holds NaN or infinity, not weights.")
        return values


def check_shape(folder: Path, name: str, shape: tuple[int, ...], expected: tuple[int, ...]) -> None:
    """Refuses a weight of another shape than the configuration says."""
    if tuple(shape) != tuple(expected):
        shapes = f"{list(shape)}, not {list(expected)}"
        raise ValueError(f"{folder}: {name} has the shape {shapes}: {_APART}")


def int8_codes(weights: np.ndarray, *, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """Rounds weights to codes in −127 … 127, with a scale for each row (axis 1) or column (0).

    float32 `[rows, columns]` → int8 of this shape, and float32 `[rows, 1]` or `[1, columns]`.
    """
    if not np.isfinite(weights).all():
        raise ValueError("Expected finite weights to store as int8, received NaN or infinity.")
    largest = np.abs(weights).max(axis=axis, keepdims=True)
    scales = np.where(largest > 0, largest / 127, 1.0).astype(np.float32)
    return np.rint(weights / scales).clip(-127, 127).astype(np.int8), scales


_FOOTER = 48
_MAGIC = 0xDB4775248B80FB57
# Bytes after a block: whether it is compressed, and a checksum.
_TRAILER = 5
# The most bytes of an index; that of a model of 11 billion parameters has some 100 KB.
_LARGEST_INDEX = 2**26
# The most bytes of a variable whose own checksum is compared: the bias of positions is read at each
# load. The sha256 of the whole file is compared when a graph is made of it.
_SMALL = 2**13
_DTYPES = {1: "<f4", 2: "<f8", 3: "<i4", 4: "u1", 5: "<i2", 6: "i1", 9: "<i8", 10: "?", 19: "<f2"}
_BFLOAT16 = 14  # its two bytes are the first ones of a float32
_DTYPES[_BFLOAT16] = "<u2"
_GRAPH_KEY = "_CHECKPOINTABLE_OBJECT_GRAPH"
_VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"


class Bundle:
    """The variables of a SavedModel, by the keys under which its root holds them.

    Attributes:
        names: Key of each variable, such as "variables/3" → its path in the Keras model, such as
            "usedan/network/feed_forward/hidden_1/kernel".
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "variables"
        self._index = self._folder / "variables.index"
        self._expect(self._index.stat().st_size <= _LARGEST_INDEX, "is too large")
        try:
            self._read(self._index.read_bytes())
            self.names = self._paths()
        except (IndexError, struct.error, UnicodeDecodeError, OverflowError) as error:
            self._expect(False, f"is damaged ({type(error).__name__}: {error})")

    def array(self, key: str) -> np.ndarray:
        """Returns a variable; unless it is bfloat16, it is memory-mapped, and read when used."""
        self._expect(key + _VALUE in self._entries, f"holds no {key!r}")
        code, shape, shard, offset, size, checksum = self._entries[key + _VALUE]
        self._expect(code in _DTYPES, f"holds {key!r} in a type of number that is not read here")
        dtype = np.dtype(_DTYPES[code])
        fits = size == dtype.itemsize * int(np.prod(shape, dtype=object))
        self._expect(fits, "says sizes that do not fit the shapes")
        if not size:
            return np.zeros(shape, dtype)
        path = self._data_file(shard, offset + size)
        array = np.memmap(path, dtype, "r", offset=offset, shape=shape)
        intact = size > _SMALL or _masked_checksum(array.tobytes()) == checksum
        self._expect(intact, f"has another checksum than {size} bytes of {path.name}")
        return (array.astype("<u4") << 16).view("<f4") if code == _BFLOAT16 else array

    def _data_file(self, shard: int, end: int) -> Path:
        """A file of the variables, which must have at least `end` bytes."""
        path = self._folder / f"variables.data-{shard:05d}-of-{self._shards:05d}"
        size = path.stat().st_size if path.is_file() else 0
        self._expect(size >= end, f"needs {end:,} bytes of {path.name}, which has {size:,}")
        return path

    def _read(self, data: bytes) -> None:
        is_index = len(data) >= _FOOTER and struct.unpack("<Q", data[-8:])[0] == _MAGIC
        self._expect(is_index, "is no index of variables, or is cut short")
        footer = data[-_FOOTER:]
        _, place = _varint(footer, 0)
        _, place = _varint(footer, place)
        offset, place = _varint(footer, place)
        size, _ = _varint(footer, place)
        fields_by_key: dict[str, _Fields] = {}
        for _, handle in self._block(data, offset, size):
            start, place = _varint(handle, 0)
            length, _ = _varint(handle, place)
            for key, value in self._block(data, start, length):
                fields_by_key[key.decode()] = _fields(value)
        header = fields_by_key.pop("", {})
        self._shards = _last(header, 1, 1)
        self._expect(not _last(header, 2, 0), "is of a big-endian machine")
        self._entries = {key: self._entry(fields) for key, fields in fields_by_key.items()}

    def _block(self, data: bytes, offset: int, size: int) -> Iterator[tuple[bytes, bytes]]:
        """The keys and values of a block; a key is stored without what it shares with the last."""
        end = offset + size
        self._expect(size >= 4 and end + _TRAILER <= len(data), "names blocks beyond its end")
        self._expect(not data[end], "is compressed, which is not read here")
        (checksum,) = struct.unpack_from("<I", data, end + 1)
        intact = checksum == _masked_checksum(data[offset : end + 1])
        self._expect(intact, "has a block with another checksum than it says")
        (restarts,) = struct.unpack_from("<I", data, end - 4)
        place, stop, key = offset, end - 4 * (restarts + 1), b""
        while place < stop:
            prefix_size, place = _varint(data, place)
            suffix_size, place = _varint(data, place)
            length, place = _varint(data, place)
            key = key[:prefix_size] + data[place : place + suffix_size]
            place += suffix_size
            yield key, data[place : place + length]
            place += length

    def _entry(self, fields: _Fields) -> tuple[int, tuple[int, ...], int, int, int, int]:
        """The number of the dtype, shape, shard, offset, size and checksum of a variable."""
        self._expect(7 not in fields, "holds sliced variables, which are not read here")
        sizes = _fields(_last(fields, 2, b"")).get(2, [])
        shape = tuple(_last(_fields(each), 1, 0) for each in sizes)
        shard, offset, size = (_last(fields, field, 0) for field in (3, 4, 5))
        checksum = int.from_bytes(_last(fields, 6, b""), "little")
        return _last(fields, 1, 0), shape, shard, offset, size, checksum

    def _paths(self) -> dict[str, str]:
        """The path of each variable in the object graph, which is stored among the variables."""
        self._expect(_GRAPH_KEY in self._entries, "lacks the object graph")
        _, _, shard, offset, size, _ = self._entries[_GRAPH_KEY]
        with self._data_file(shard, offset + size).open("rb") as file:
            file.seek(offset)
            content = file.read(size)
        length, place = _varint(content, 0)
        place += 4  # a checksum of the lengths
        self._expect(place + length == len(content), "lacks a part of the object graph")
        paths = {}
        for node in _fields(content[place:]).get(1, []):
            for attribute in _fields(node).get(2, []):
                fields = _fields(attribute)
                key, path = _last(fields, 3, b"").decode(), _last(fields, 2, b"").decode()
                if key.endswith(_VALUE):
                    paths[key.removesuffix(_VALUE)] = path
        return paths

    def _expect(self, holds: bool, otherwise: str) -> None:
        if not holds:
            raise ValueError(f"{self._index} {otherwise}. Copy or export the model again.")


_Fields = dict[int, list[Any]]
Number = TypeVar("Number", int, bytes)


def _varint(data: bytes, place: int) -> tuple[int, int]:
    """Reads a number with seven bits per byte; returns it and the place after it."""
    value = shift = 0
    while True:
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place
        shift += 7
        if shift > 63:
            raise OverflowError("a number of more than 64 bits")


def _fields(message: Any) -> _Fields:
    """The fields of a Protocol Buffers message by number, each a list of numbers or bytes."""
    message = _last({0: [message]}, 0, b"")
    fields: _Fields = {}
    place = 0
    while place < len(message):
        tag, place = _varint(message, place)
        value: Any
        if tag & 7 == 0:
            value, place = _varint(message, place)
        else:
            length = {1: 8, 5: 4}.get(tag & 7)
            if length is None:
                length, place = _varint(message, place)
            value = message[place : place + length]
            if len(value) < length or tag & 7 not in (1, 2, 5):
                raise IndexError("a field of an unknown kind, or beyond the end")
            place += length
        fields.setdefault(tag >> 3, []).append(value)
    return fields


def _last(fields: _Fields, field: int, default: Number) -> Number:
    """The last value of a field, of the type of its default."""
    value = fields.get(field, [default])[-1]
    if not isinstance(value, type(default)):
        raise IndexError("a number in place of a message, or the reverse")
    return value


# CRC-32C (Castagnoli) of each byte.
_CHECKSUMS = [*range(256)]
for _ in range(8):
    _CHECKSUMS = [value >> 1 ^ (0x82F63B78 if value & 1 else 0) for value in _CHECKSUMS]


def _masked_checksum(data: bytes) -> int:
    """LevelDB's checksum of a block: CRC-32C, rotated by 15 bits, plus a constant."""
    value = 0xFFFFFFFF
    for byte in data:
        value = _CHECKSUMS[(value ^ byte) & 0xFF] ^ value >> 8
    value ^= 0xFFFFFFFF
    return ((value >> 15 | value << 17) + 0xA282EAD8) & 0xFFFFFFFF
