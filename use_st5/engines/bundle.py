"""Reading the variables of a SavedModel without TensorFlow.

`variables/variables.index` is a table of LevelDB: sorted keys, each with a `BundleEntryProto` that
says where a tensor lies in `variables/variables.data-*`. The formats are those of
`tensorflow/core/util/tensor_bundle`, `tensorflow/core/lib/io/table_format.txt` and
`tensorflow/core/protobuf/{tensor_bundle,trackable_object_graph}.proto`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

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
_BFLOAT16, _STRING = 14, 7
_GRAPH_KEY = "_CHECKPOINTABLE_OBJECT_GRAPH"
_VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"


class _Entry(NamedTuple):
    dtype: int
    shape: tuple[int, ...]
    shard: int
    offset: int
    size: int
    checksum: int


class Bundle:
    """The variables of a SavedModel, by the keys under which its root holds them.

    Attributes:
        names: Key of each variable, such as "variables/3" → its path in the Keras model, such as
            "usedan/network/feed_forward/hidden_1/kernel".
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "variables"
        self._index = self._folder / "variables.index"
        if not self._index.is_file():
            raise FileNotFoundError(
                f"Expected the variables of a SavedModel in {self._index}, found no such file. "
                "Copy or export the model again."
            )
        if self._index.stat().st_size > _LARGEST_INDEX:
            raise self._damaged(f"is larger than {_LARGEST_INDEX:,} bytes")
        try:
            self._read(self._index.read_bytes())
            self.names = self._paths()
        except (IndexError, struct.error, UnicodeDecodeError, OverflowError) as error:
            raise self._damaged(f"is damaged ({type(error).__name__}: {error})") from error

    def array(self, key: str) -> np.ndarray:
        """Returns a variable; unless it is bfloat16, it is memory-mapped, and read when used."""
        entry = self._entries.get(key + _VALUE)
        if entry is None:
            raise self._damaged(f"holds no {key!r}")
        is_bfloat16 = entry.dtype == _BFLOAT16
        if not is_bfloat16 and entry.dtype not in _DTYPES:
            raise self._damaged(f"holds {key!r} in a type of number that is not read here")
        dtype = np.dtype("<u2" if is_bfloat16 else _DTYPES[entry.dtype])
        if entry.size != dtype.itemsize * int(np.prod(entry.shape, dtype=object)):
            raise self._damaged("says sizes that do not fit the shapes")
        if not entry.size:
            return np.zeros(entry.shape, dtype)
        path = self._checked_file(entry)
        array = np.memmap(path, dtype, "r", offset=entry.offset, shape=entry.shape)
        if entry.size <= _SMALL and _masked_checksum(array.tobytes()) != entry.checksum:
            raise self._damaged(f"has another checksum than {entry.size} bytes of {path.name}")
        return (array.astype("<u4") << 16).view("<f4") if is_bfloat16 else array

    def _checked_file(self, entry: _Entry) -> Path:
        """Returns the file of an entry, and checks that it contains the whole entry."""
        path = self._folder / f"variables.data-{entry.shard:05d}-of-{self._shards:05d}"
        size = path.stat().st_size if path.is_file() else -1
        if size < entry.offset + entry.size:
            actual = f"{size:,} bytes" if size >= 0 else "no such file"
            raise ValueError(
                f"Expected {entry.offset + entry.size:,} bytes or more in {path}, found {actual}. "
                "Copy or export the model again."
            )
        return path

    def _read(self, data: bytes) -> None:
        if len(data) < _FOOTER or struct.unpack("<Q", data[-8:])[0] != _MAGIC:
            raise self._damaged("is no index of variables, or is cut short")
        footer = data[-_FOOTER:]
        _, place = _varint(footer, 0)
        _, place = _varint(footer, place)
        offset, place = _varint(footer, place)
        size, _ = _varint(footer, place)
        fields_by_key: dict[str, dict[int, list[int | bytes]]] = {}
        for _, handle in self._block(data, offset, size):
            start, place = _varint(handle, 0)
            length, _ = _varint(handle, place)
            for key, value in self._block(data, start, length):
                fields_by_key[key.decode()] = _fields(value)
        if "" not in fields_by_key:
            raise self._damaged("lacks its header")
        header = fields_by_key.pop("")
        self._shards = _number(header, 1, 1)
        if _number(header, 2):
            raise self._damaged("is of a big-endian machine, which is not read here")
        self._entries = {key: self._entry(fields) for key, fields in fields_by_key.items()}

    def _block(self, data: bytes, offset: int, size: int) -> Iterator[tuple[bytes, bytes]]:
        """The keys and values of a block; a key is stored without what it shares with the last."""
        end = offset + size
        if size < 4 or end + _TRAILER > len(data):
            raise self._damaged("names blocks beyond its end")
        if data[end]:
            raise self._damaged("is compressed, which is not read here")
        (checksum,) = struct.unpack_from("<I", data, end + 1)
        if checksum != _masked_checksum(data[offset : end + 1]):
            raise self._damaged("has a block with another checksum than it says")
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

    def _entry(self, fields: dict[int, list[int | bytes]]) -> _Entry:
        if 7 in fields:
            raise self._damaged("holds sliced variables, which are not read here")
        shape = _fields(_bytes(fields, 2))
        sizes = tuple(_number(_fields(each), 1) for each in shape.get(2, []))
        shard, offset, size = (_number(fields, field) for field in (3, 4, 5))
        checksum = int.from_bytes(_bytes(fields, 6), "little")
        return _Entry(_number(fields, 1), sizes, shard, offset, size, checksum)

    def _paths(self) -> dict[str, str]:
        """The path of each variable in the object graph, which is stored among the variables."""
        entry = self._entries.get(_GRAPH_KEY)
        if entry is None or entry.dtype != _STRING:
            raise self._damaged("lacks the object graph")
        with self._checked_file(entry).open("rb") as file:
            file.seek(entry.offset)
            content = file.read(entry.size)
        length, place = _varint(content, 0)
        place += 4  # a checksum of the lengths
        if place + length != len(content):
            raise self._damaged("lacks a part of the object graph")
        paths = {}
        for node in _fields(content[place:]).get(1, []):
            for attribute in _fields(node).get(2, []):
                fields = _fields(attribute)
                key, path = _bytes(fields, 3).decode(), _bytes(fields, 2).decode()
                if key.endswith(_VALUE):
                    paths[key.removesuffix(_VALUE)] = path
        return paths

    def _damaged(self, what: str) -> ValueError:
        return ValueError(f"{self._index} {what}. Copy or export the model again.")


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


def _fields(message: int | bytes) -> dict[int, list[int | bytes]]:
    """The fields of a Protocol Buffers message by number, each a list of numbers or bytes."""
    if not isinstance(message, bytes):
        raise IndexError("a number in place of a message")
    fields: dict[int, list[int | bytes]] = {}
    place = 0
    while place < len(message):
        tag, place = _varint(message, place)
        value: int | bytes
        if tag & 7 == 0:
            value, place = _varint(message, place)
        else:
            length = {1: 8, 5: 4}.get(tag & 7)
            if length is None:
                if tag & 7 != 2:
                    raise IndexError("a field of an unknown kind")
                length, place = _varint(message, place)
            value = message[place : place + length]
            if len(value) < length:
                raise IndexError("a field beyond the end")
            place += length
        fields.setdefault(tag >> 3, []).append(value)
    return fields


def _number(fields: dict[int, list[int | bytes]], field: int, default: int = 0) -> int:
    value = fields.get(field, [default])[-1]
    if not isinstance(value, int):
        raise IndexError("bytes in place of a number")
    return value


def _bytes(fields: dict[int, list[int | bytes]], field: int) -> bytes:
    value = fields.get(field, [b""])[-1]
    if not isinstance(value, bytes):
        raise IndexError("a number in place of a message")
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
