"""Where the arrays lie in a file that Flax wrote as MessagePack."""

from __future__ import annotations

import math
import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from use_st5.convert.weights import number_dtype

# flax.serialization: arrays and scalars of NumPy are MessagePack extensions, each a triple (shape,
# name of the dtype, bytes).
_NDARRAY, _NUMPY_SCALAR = 1, 3

# Ten times what the largest T5 has, arrays and the words about them.
_MOST_VALUES = 500_000
# Names, and numbers beside arrays; what is longer is none.
_LONGEST = 2**20

# First byte → struct format of a number, or of the length that follows.
_NUMBERS = {
    0xCA: ">f", 0xCB: ">d", 0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q",
    0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q",
}  # fmt: skip
_BINARIES = {0xC4: ">B", 0xC5: ">H", 0xC6: ">I"}
_STRINGS = {0xD9: ">B", 0xDA: ">H", 0xDB: ">I"}
_ARRAYS = {0xDC: ">H", 0xDD: ">I"}
_MAPS = {0xDE: ">H", 0xDF: ">I"}
_EXTENSIONS = {0xC7: ">B", 0xC8: ">H", 0xC9: ">I"}
_FIXED_EXTENSIONS = {0xD4: 1, 0xD5: 2, 0xD6: 4, 0xD7: 8, 0xD8: 16}
_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}


@dataclass(frozen=True)
class StoredArray:
    """An array in a file.

    Attributes:
        path: The file.
        start: Where its numbers begin, in bytes.
        shape: Its shape.
        dtype: Of its numbers.
    """

    path: Path
    start: int
    shape: tuple[int, ...]
    dtype: np.dtype

    def read(self) -> np.ndarray:
        """The array."""
        count = math.prod(self.shape)
        flat = np.fromfile(self.path, self.dtype, count, offset=self.start)
        return flat.reshape(self.shape)


def read_msgpack_index(path: str | os.PathLike[str]) -> Any:
    """The content of a file, with a `StoredArray` for each array instead of its numbers.

    Libraries for MessagePack read a file whole, arrays and all; this skips them, so that a file of
    many gigabytes is read array by array. Maps whose keys are no texts, and extensions other than
    Flax's arrays, do not occur in checkpoints and are refused.

    Raises:
        ValueError: It is no such file, or it is cut short.
    """
    path = Path(path)
    try:
        with path.open("rb") as file:
            return _Reader(file, path).value()
    except (ValueError, KeyError, TypeError, EOFError, RecursionError) as error:
        raise ValueError(
            f"{path}: expected a checkpoint written by Flax in MessagePack "
            f"({type(error).__name__}: {error})."
        ) from error


class _Reader:
    """Reads one value after the other."""

    def __init__(self, file: BinaryIO, path: Path) -> None:
        self._file = file
        self._path = path
        self._size = path.stat().st_size
        self._values = 0

    def value(self) -> Any:
        """The next value."""
        self._values += 1
        if self._values > _MOST_VALUES:
            raise ValueError(f"expected up to {_MOST_VALUES:,} values, received more")
        code = self._bytes(1)[0]
        if code <= 0x7F or code >= 0xE0:
            return code if code <= 0x7F else code - 0x100
        if code in _CONSTANTS:
            return _CONSTANTS[code]
        if code in _NUMBERS:
            return self._number(_NUMBERS[code])
        if code in _BINARIES:
            return self._bytes(self._number(_BINARIES[code]))
        if code in _EXTENSIONS:
            return self._extension(self._number(_EXTENSIONS[code]))
        if code in _FIXED_EXTENSIONS:
            return self._extension(_FIXED_EXTENSIONS[code])
        return self._text_or_container(code)

    def _text_or_container(self, code: int) -> Any:
        if code <= 0x8F or code in _MAPS:
            return self._map(code & 0x0F if code <= 0x8F else self._number(_MAPS[code]))
        if code <= 0x9F or code in _ARRAYS:
            count = code & 0x0F if code <= 0x9F else self._number(_ARRAYS[code])
            return [self.value() for _ in range(count)]
        if code <= 0xBF or code in _STRINGS:
            length = code & 0x1F if code <= 0xBF else self._number(_STRINGS[code])
            return self._bytes(length).decode("utf-8")
        raise ValueError(f"no value begins with {code:#x}, at byte {self._file.tell() - 1}")

    def _map(self, count: int) -> dict[str, Any]:
        content = {}
        for _ in range(count):
            key = self.value()
            if not isinstance(key, str):
                raise ValueError(f"a key is {key!r}, at byte {self._file.tell()}")
            content[key] = self.value()
        return content

    def _extension(self, length: int) -> StoredArray:
        kind = self._bytes(1)[0]
        end = self._file.tell() + length
        if kind not in (_NDARRAY, _NUMPY_SCALAR) or self._bytes(1) != b"\x93":
            raise ValueError(f"an extension of kind {kind}, at byte {end - length}")
        shape, dtype = self._shape(), number_dtype(self.value())
        size = self._number(_BINARIES[self._bytes(1)[0]])
        start = self._file.tell()
        if size != math.prod(shape) * dtype.itemsize or start + size != end:
            raise ValueError(f"an array {dtype} {list(shape)} of {size} bytes, at byte {start}")
        if end > self._size:
            raise EOFError("the file ends inside an array")
        self._file.seek(end)
        return StoredArray(self._path, start, shape, dtype)

    def _shape(self) -> tuple[int, ...]:
        shape = self.value()
        if not isinstance(shape, list) or any(type(n) is not int or n < 0 for n in shape):
            raise ValueError(f"a shape is {shape!r}, at byte {self._file.tell()}")
        return tuple(shape)

    def _number(self, kind: str) -> Any:
        return struct.unpack(kind, self._bytes(struct.calcsize(kind)))[0]

    def _bytes(self, count: int) -> bytes:
        if count > _LONGEST:
            raise ValueError(f"a value of {count:,} bytes, at byte {self._file.tell()}")
        content = self._file.read(count)
        if len(content) < count:
            raise EOFError("the file ends inside a value")
        return content
