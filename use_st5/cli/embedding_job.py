"""The unfinished work of `use-st5 embed`: kept beside the output, continued by the next call."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Literal

import msgspec

from use_st5._files import atomic_path, space_for
from use_st5._records import Count, read_record

if TYPE_CHECKING:
    import numpy as np

Format = Literal["npy", "jsonl"]

# The folder that holds this file is ours: without it nothing in the folder is removed.
_MARKER = "use_st5.partial"
_MARKED = "Unfinished work of use-st5 embed, format 1. The same command continues it.\n"
_DATA, _STATE = "data", "state.json"
# What a process leaves that is killed while it writes the state.
_LEFTOVERS = f".{Path(_STATE).stem}.*{Path(_STATE).suffix}"

_BYTES_PER_NUMBER = 4
_BLOCK = 2**20


@dataclass(frozen=True)
class JobDescription:
    """What must agree for unfinished work to be continued.

    Attributes:
        input_sha256: hash of the input's bytes.
        rows: number of texts, which is the number of rows of the output.
        model: what identifies the model's files.
        dimension: length of a vector.
        format: "npy" or "jsonl".
    """

    input_sha256: str
    rows: int
    model: str
    dimension: int
    format: Format


class _State(msgspec.Struct):
    """How much of the work is safely on the disk."""

    description: JobDescription
    rows_done: Count
    truncated: Count
    bytes: Count


class EmbeddingJob:
    """Appends rows to a file in a side folder and moves it to its place when it is whole.

    The side folder `NAME.partial` holds the growing file and a state: the description, and how
    many rows and bytes are safely on the disk. A process that dies between the two writes leaves
    surplus bytes, which the next one cuts off. The state also counts the texts that the model cut.
    A third file marks the folder as ours; a folder without it, or without a state, is not touched.
    For the same texts and model the finished file is the same, however often the work was
    interrupted. Two processes must not have the same job (`sole_writer`).
    """

    def __init__(self, output: Path, description: JobDescription) -> None:
        self.output = output
        self.description = description
        self.folder = output.with_name(f"{output.name}.partial")
        self.rows_done = 0
        self.truncated = 0
        self._bytes = 0
        self._data = self.folder / _DATA
        self._state = self.folder / _STATE

    def open(self) -> bool:
        """Continues the unfinished work if it is of this description, else starts anew.

        Returns:
            False if work of another description was thrown away, else True.

        Raises:
            FileExistsError: What has the side folder's name is not ours.
        """
        state = self._read_state()
        if state is not None and state.description == self.description and self._holds(state):
            os.truncate(self._data, state.bytes)
            self.rows_done, self.truncated = state.rows_done, state.truncated
            self._bytes = state.bytes
            return True
        existed = self._check_ours(state)
        self.discard()
        self.folder.mkdir(exist_ok=True)
        (self.folder / _MARKER).write_text(_MARKED, encoding="utf-8")
        self._bytes = self._data.write_bytes(self._header())
        self._write_state()
        return not existed

    def _check_ours(self, state: _State | None) -> bool:
        """Checks that the side folder may be written; says whether it holds work.

        Version 0.2 wrote no marker: there the state says whose folder it is.
        """
        folder = self.folder
        names = [each.name for each in folder.iterdir()] if folder.is_dir() else []
        if state is not None or _MARKER in names:
            return True
        if names or (folder.exists() and not folder.is_dir()):
            raise FileExistsError(
                f"{folder}: expected the unfinished work of use-st5 embed, or nothing, found "
                f"{'files of another origin' if names else 'a file'}; move it away, or choose "
                "another output"
            )
        return False

    def append(self, texts: list[str], vectors: np.ndarray, *, truncated: int) -> None:
        """Adds float32 `vectors` `[texts, dimension]`; on return they are on the disk.

        Args:
            texts: the texts.
            vectors: theirs.
            truncated: how many of the texts the model cut.

        Raises:
            ValueError: the model gave another shape than it had announced.
        """
        expected = (len(texts), self.description.dimension)
        if vectors.shape != expected:
            raise ValueError(
                f"expected vectors of shape {expected} from the model, received {vectors.shape}"
            )
        with space_for(self.output), self._data.open("ab") as data:
            self._bytes += data.write(to_bytes(texts, vectors, self.description.format))
            data.flush()
            os.fsync(data.fileno())
        self.rows_done += len(texts)
        self.truncated += truncated
        self._write_state()

    def finish(self) -> None:
        """Moves the whole file onto the output and removes the side folder.

        Raises:
            ValueError: as `whole_file`.
        """
        self.whole_file().replace(self.output)
        self.discard()

    def discard(self) -> None:
        """Removes the side folder's own files, and the folder where nothing else is in it."""
        for path in (self._data, self._state, *self.folder.glob(_LEFTOVERS)):
            path.unlink(missing_ok=True)
        # The marker goes last: a removal that is killed is continued.
        (self.folder / _MARKER).unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self.folder.rmdir()

    def whole_file(self) -> Path:
        """The growing file, which has all rows.

        Raises:
            ValueError: rows are missing, because the input changed while it was read, or the file
                has not the bytes that were written.
        """
        if self.rows_done != self.description.rows:
            raise ValueError(
                f"expected {self.description.rows} texts, read {self.rows_done}: the input changed "
                "while it was read; start the command again"
            )
        self._check_bytes()
        return self._data

    def _check_bytes(self) -> None:
        """Checks the size of the whole file, which of numbers the rows alone determine."""
        expected, found = self._bytes, self._data.stat().st_size
        if self.description.format == "npy":
            expected = self._npy_bytes(self.description.rows)
        if found != expected:
            raise ValueError(
                f"expected {expected:,} bytes in {self._data}, found {found:,}: another process "
                f"changed it; remove {self.folder} and start the command again"
            )

    def _read_state(self) -> _State | None:
        # What cannot be read is begun anew.
        with contextlib.suppress(OSError, ValueError):
            return read_record(self._state, _State, remedy="It is begun anew.")
        return None

    def _holds(self, state: _State) -> bool:
        """Whether the growing file has the rows that a state tells of."""
        if not self._data.is_file():
            return False
        rows = state.rows_done
        if not state.truncated <= rows <= self.description.rows:
            return False
        if self.description.format == "npy":
            whole = state.bytes == self._npy_bytes(rows)
            return whole and self._data.stat().st_size >= state.bytes
        with self._data.open("rb") as data:
            return _lines(data, state.bytes) == rows

    def _write_state(self) -> None:
        state = {
            "description": dataclasses.asdict(self.description),
            "rows_done": self.rows_done,
            "truncated": self.truncated,
            "bytes": self._bytes,
        }
        with atomic_path(self._state) as temporary:
            temporary.write_text(json.dumps(state, indent=1), encoding="utf-8")

    def _npy_bytes(self, rows: int) -> int:
        return len(self._header()) + _BYTES_PER_NUMBER * rows * self.description.dimension

    def _header(self) -> bytes:
        if self.description.format == "jsonl":
            return b""
        import io

        import numpy as np

        header = io.BytesIO()
        shape = (self.description.rows, self.description.dimension)
        np.lib.format.write_array_header_1_0(
            header, {"descr": "<f4", "fortran_order": False, "shape": shape}
        )
        return header.getvalue()


def _lines(data: BinaryIO, size: int) -> int | None:
    """Number of whole lines that the first `size` bytes are; None where they are not."""
    lines, last = 0, b"\n"
    while size and (block := data.read(min(size, _BLOCK))):
        lines, last, size = lines + block.count(b"\n"), block[-1:], size - len(block)
    return lines if last == b"\n" and not size else None


def to_bytes(texts: list[str], vectors: np.ndarray, layout: Format) -> bytes:
    """The rows of an output file, without its header.

    Args:
        texts: the texts.
        vectors: float32, `[texts, dimension]`.
        layout: "npy": little-endian numbers; "jsonl": an object with `text` and `embedding` a line.
    """
    if layout == "npy":
        return vectors.astype("<f4").tobytes()
    # Nine digits give every float32 back exactly.
    numbers = ",".join(["%.9g"] * vectors.shape[1])
    lines = [
        f'{{"text":{json.dumps(text, ensure_ascii=False)},"embedding":[{numbers % tuple(row)}]}}\n'
        for text, row in zip(texts, vectors.tolist(), strict=True)
    ]
    return "".join(lines).encode("utf-8")
