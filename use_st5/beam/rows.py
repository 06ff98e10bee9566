"""The rows of a corpus's files: a text with its id, or the reason why a row is bad."""

from __future__ import annotations

import contextlib
import json
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, Literal, NamedTuple, get_args

from pyarrow import parquet

from use_st5.data.formats import json_object
from use_st5.data.reader import MalformedRowError
from use_st5.io.lines import LongLine, is_gzip, lines_of

# The report in the folder of an embedded corpus.
REPORT = "embeddings.json"
FileFormat = Literal["text", "jsonl", "parquet", "tfrecord"]

_FORMATS: dict[str, FileFormat] = {
    ".txt": "text",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".tfrecord": "tfrecord",
    ".tfrecords": "tfrecord",
}
# The characters of a bad row that are kept.
_KEPT = 10_000
# Bytes of a line; a longer one is a bad row.
_LONGEST = 2**26


class TextRow(NamedTuple):
    """A text and its id."""

    id: str
    text: str


@dataclass(frozen=True)
class BadRow:
    r"""A row that has no vector.

    Attributes:
        id: `FILE:NUMBER`, the row's number counted from 1; only `FILE` if the file could not be
            read further; the row's own id if it has one.
        reason: The reason why it is bad.
        content: The first 10,000 characters of the row; bytes that are no UTF-8 as `\xNN`.
    """

    id: str
    reason: str
    content: str = ""

    @classmethod
    def of(cls, name: str, reason: str, content: Any) -> BadRow:
        """Makes a bad row of content of any type."""
        if isinstance(content, bytes):
            content = content[: 4 * _KEPT].decode("utf-8", "backslashreplace")
        text = content if isinstance(content, str) else repr(content)
        # Characters that UTF-8 cannot hold could not be written.
        text = text[:_KEPT].encode("utf-8", "backslashreplace").decode("utf-8")
        return cls(name, reason, text)

    def as_json(self) -> str:
        """The row as a line of JSON."""
        return json.dumps(asdict(self), ensure_ascii=False)


Row = TextRow | BadRow


@dataclass(frozen=True)
class RowReader:
    """Reads rows from open files, good and bad ones in their order.

    Attributes:
        text: The field, column or feature with the text; lines of text have no fields.
        id: The field with the id, a text or a whole number; None: `FILE:NUMBER`.
        file_format: The format; None: the file's name says it, without a `.gz` at the end.
    """

    text: str = "text"
    id: str | None = None
    file_format: FileFormat | None = None

    def rows(self, file: BinaryIO, name: str) -> Iterator[Row]:
        """Yields the rows of a file that can be rewound.

        If a file is damaged or not of its format, the last row is a bad row that says so. An error
        of the system is raised, so that the runner tries again.

        Args:
            file: A plain file; lines of text, jsonl and tfrecord may be compressed by gzip.
            name: The name that the ids of its rows begin with.
        """
        read = getattr(self, f"_{self.file_format or format_of(name)}")
        number = 0
        try:
            for number, row in read(file, name):  # noqa: B007
                yield row
        except (ValueError, OSError, NotImplementedError) as error:  # Arrow has all of them.
            if getattr(error, "errno", None) is not None:  # Arrow's OSError of damage has none.
                raise
            yield BadRow(name, f"not read after row {number}: {' '.join(str(error).split())}")

    def _text(self, file: BinaryIO, name: str) -> Iterator[tuple[int, Row]]:
        for number, line in _lines(file, name):
            try:
                yield number, TextRow(f"{name}:{number}", _decoded(line))
            except MalformedRowError as reason:
                yield number, BadRow.of(f"{name}:{number}", str(reason), line)

    def _jsonl(self, file: BinaryIO, name: str) -> Iterator[tuple[int, Row]]:
        for number, line in _lines(file, name):
            try:
                record: Any = json_object(_decoded(line))
            except MalformedRowError as reason:
                record = reason
            if not line.strip():
                continue
            if isinstance(record, MalformedRowError):
                yield number, BadRow.of(f"{name}:{number}", str(record), line)
            else:
                text, row_id = record.get(self.text), record.get(self.id)
                yield number, self._row(f"{name}:{number}", text, row_id, line)

    def _parquet(self, file: BinaryIO, name: str) -> Iterator[tuple[int, Row]]:
        columns = [self.text] if self.id is None else [self.text, self.id]
        number = 0
        with parquet.ParquetFile(file) as reader:
            if missing := {*columns} - {*reader.schema_arrow.names}:
                raise ValueError(
                    f"expected the columns {columns}, found {reader.schema_arrow.names} without "
                    f"{sorted(missing)}"
                )
            for batch in reader.iter_batches(columns=columns):
                texts = batch.column(self.text).to_pylist()
                ids = batch.column(self.id).to_pylist() if self.id else [None] * len(texts)
                for text, row_id in zip(texts, ids, strict=True):
                    number += 1
                    yield number, self._row(f"{name}:{number}", text, row_id, (row_id, text))

    def _tfrecord(self, file: BinaryIO, name: str) -> Iterator[tuple[int, Row]]:
        import tensorflow as tf

        reader = tf.compat.v1.io.tf_record_iterator
        with _local_copy(file) as path:
            options = "GZIP" if is_gzip(file) else ""
            records = reader(str(path), tf.io.TFRecordOptions(compression_type=options))
            try:
                for number, record in enumerate(records, start=1):
                    yield number, self._of_example(tf.train.Example, record, f"{name}:{number}")
            except tf.errors.DataLossError as error:
                raise ValueError(f"expected records of TensorFlow ({error.message})") from error

    def _of_example(self, kind: Any, record: bytes, place: str) -> Row:
        try:
            features = kind.FromString(record).features.feature
        except Exception:  # protobuf's DecodeError, whose place depends on its implementation
            return BadRow.of(place, "expected a tf.train.Example", record)
        text, row_id = _only_value(features, self.text), _only_value(features, self.id)
        return self._row(place, text, row_id, record)

    def _row(self, place: str, text: Any, own: Any, content: Any) -> Row:
        """Makes a row of a text and an id of any type; a bad row if they do not fit."""
        try:
            name = place if self.id is None else _as_id(own, self.id)
            return TextRow(name, as_text(text, self.text))
        except MalformedRowError as reason:
            return BadRow.of(place, str(reason), content)


def format_of(name: str) -> FileFormat:
    """Returns the format of a file, by its name.

    Raises:
        ValueError: The name does not say a format.
    """
    suffix = PurePosixPath(name.lower().removesuffix(".gz")).suffix
    if suffix not in _FORMATS:
        raise ValueError(
            f"{name}: expected a name that ends in one of {', '.join(_FORMATS)} (.gz may follow). "
            f"Name the format: {', '.join(get_args(FileFormat))}."
        )
    return _FORMATS[suffix]


def fault(name: object, text: object) -> str | None:
    """Says why an id and a text of any type cannot be a row; None if they can."""
    try:
        for value, what in ((name, "id"), (text, "text")):
            as_text(value, what).encode()
    except MalformedRowError as reason:
        return str(reason)
    except UnicodeEncodeError:
        return "half of a surrogate pair, which is no character"
    return None


def _lines(file: BinaryIO, name: str) -> Iterator[tuple[int, bytes]]:
    return lines_of(file, where=name, longest=_LONGEST, skip_long=True)


def _decoded(line: bytes) -> str:
    """Returns a line as text; raises MalformedRowError if it is no UTF-8, or too long."""
    if isinstance(line, LongLine):
        raise MalformedRowError(f"a line of more than {_LONGEST:,} bytes")
    try:
        return line.decode()
    except UnicodeDecodeError:
        raise MalformedRowError("invalid utf-8") from None


@contextlib.contextmanager
def _local_copy(file: BinaryIO) -> Iterator[Path]:
    """Gives the path of the file on this machine's disk; a file without one is copied there."""
    name = getattr(file, "name", None)
    if isinstance(name, str) and Path(name).is_file():
        yield Path(name)
        return
    with tempfile.NamedTemporaryFile() as copy:
        shutil.copyfileobj(file, copy)
        copy.flush()
        file.seek(0)
        yield Path(copy.name)


def _only_value(features: Any, key: str | None) -> Any:
    """Returns the value of a feature; None if it has none, a list if it has several."""
    if key is None or key not in features:
        return None
    feature = features[key]
    values = [*feature.bytes_list.value, *feature.int64_list.value, *feature.float_list.value]
    return values[0] if len(values) == 1 else values or None


def as_text(value: Any, field: str) -> str:
    """A text as a string.

    Raises:
        MalformedRowError: The value is neither a string nor UTF-8.
    """
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise MalformedRowError(f"invalid utf-8 in {field!r}") from None
    if isinstance(value, str):
        return value
    if value is None:
        raise MalformedRowError(f"no {field!r}")
    raise MalformedRowError(f"{field!r} is of type {type(value).__name__}, expected text")


def _as_id(value: Any, field: str) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return as_text(value, field)
