"""The rows of a corpus's files: a text with its id, or the reason why a row is bad."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, Literal

from use_st5.data.tables import LONGEST_ROW, MalformedRowError, decode, json_object, parquet_batches
from use_st5.io.lines import is_gzip, lines_of

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

# A bad row has `id`, `reason` and `content`.
BadRow = dict[str, str]
# The id and the text of a row, or a bad row.
Row = tuple[str, str] | BadRow


def bad_row(name: str, reason: str, content: Any = "") -> BadRow:
    r"""Describes a row without a vector; 10,000 characters are kept, and other bytes as `\xNN`."""
    if isinstance(content, bytes):
        content = content[: 4 * _KEPT].decode("utf-8", "backslashreplace")
    text = content if isinstance(content, str) else repr(content)
    # Characters that UTF-8 cannot hold could not be written.
    text = text[:_KEPT].encode("utf-8", "backslashreplace").decode("utf-8")
    return {"id": name, "reason": reason, "content": text}


def read_rows(
    file: BinaryIO,
    name: str,
    *,
    text_field: str = "text",
    id_field: str | None = None,
    file_format: FileFormat | None = None,
) -> Iterator[Row]:
    """Yields the rows of an open file that can be rewound, good and bad ones in their order.

    If a file is damaged or not of its format, the last row is a bad row that says so. An error of
    the system is raised, so that the runner tries again.

    Args:
        file: A plain file; lines of text, jsonl and tfrecord may be compressed by gzip.
        name: The name that the ids of its rows begin with.
        text_field: The field, column or feature with the text; lines of text have no fields.
        id_field: The field with the id, a text or a whole number; None: `FILE:NUMBER`.
        file_format: The format; None: the file's name says it, without a `.gz` at the end.
    """
    columns = [text_field] if id_field is None else [text_field, id_field]
    suffix = PurePosixPath(name.lower().removesuffix(".gz")).suffix
    if file_format is None and suffix not in _FORMATS:
        expected = f"expected a name with one of {', '.join(_FORMATS)}, or a format"
        raise ValueError(f"{name}: {expected}.")
    number, file_format = 0, file_format or _FORMATS[suffix]
    try:
        if file_format in ("text", "jsonl"):
            records = _line_records(file, name, columns, objects=file_format == "jsonl")
        else:
            records = (_parquet if file_format == "parquet" else _tfrecord)(file, columns)
        for number, record, content in records:
            place = f"{name}:{number}"
            try:
                if isinstance(record, MalformedRowError):
                    raise record
                own = place if id_field is None else record.get(id_field)
                if isinstance(own, int) and not isinstance(own, bool):
                    own = str(own)
                text = as_text(record.get(text_field), text_field)
                yield as_text(own, id_field or "id"), text
            except MalformedRowError as reason:
                yield bad_row(place, str(reason), content)
    except (ValueError, OSError, NotImplementedError) as error:  # Arrow has all of them.
        if getattr(error, "errno", None) is not None:  # Arrow's OSError of damage has none.
            raise
        yield bad_row(name, f"not read after row {number}: {' '.join(str(error).split())}")


# The number of a row, its fields or the reason why there are none, and its content.
_Records = Iterator[tuple[int, dict[str, Any] | MalformedRowError, Any]]


def _line_records(file: BinaryIO, name: str, columns: list[str], *, objects: bool) -> _Records:
    for number, line in lines_of(file, where=name, longest=LONGEST_ROW, skip_long=True):
        if objects and not line.strip():
            continue
        try:
            text = decode(line)
            # A line of text has no id of its own.
            place = f"{name}:{number}"
            record = json_object(text) if objects else {columns[-1]: place, columns[0]: text}
            yield number, record, line
        except MalformedRowError as reason:
            yield number, reason, line


def _parquet(file: BinaryIO, columns: list[str]) -> _Records:
    batches = parquet_batches(Path("the file"), lambda _: columns, file=file)
    rows = (row for batch in batches for row in batch.to_pylist())
    for number, row in enumerate(rows, start=1):
        yield number, row, row


def _tfrecord(file: BinaryIO, columns: list[str]) -> _Records:
    import tensorflow as tf

    options = tf.io.TFRecordOptions(compression_type="GZIP" if is_gzip(file) else "")
    with tempfile.NamedTemporaryFile() as copy:  # TensorFlow reads no file of Beam's.
        shutil.copyfileobj(file, copy)
        copy.flush()
        records = tf.compat.v1.io.tf_record_iterator(copy.name, options)
        try:
            for number, record in enumerate(records, start=1):
                try:
                    features = tf.train.Example.FromString(record).features.feature
                except Exception:  # protobuf's DecodeError, whose place depends on its version
                    yield number, MalformedRowError("expected a tf.train.Example"), record
                else:
                    fields = {}
                    for key in columns:  # None if there is no value, a list if there are several.
                        lists = features[key] if key in features else tf.train.Feature()
                        values = [*lists.bytes_list.value, *lists.int64_list.value]
                        values += lists.float_list.value
                        fields[key] = values[0] if len(values) == 1 else values or None
                    yield number, fields, record
        except tf.errors.DataLossError as error:
            raise ValueError(f"expected records of TensorFlow ({error.message})") from error


def as_text(value: Any, field: str) -> str:
    """A text as a string; MalformedRowError if the value is neither a string nor UTF-8."""
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise MalformedRowError(f"invalid utf-8 in {field!r}") from None
    if isinstance(value, str):
        return value
    is_type = f"{field!r} is of type {type(value).__name__}, expected text"
    raise MalformedRowError(f"no {field!r}" if value is None else is_type)
