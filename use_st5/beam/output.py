"""The folder that a corpus's vectors are written to, on any file system that Beam has.

A run writes into a folder of its own inside it. When all is written and counted, a record names the
new files. Then the older files are removed, and the new ones moved to their places, the report
last. If a run is killed after the record, the next run does the rest.
"""

from __future__ import annotations

import contextlib
import json
import re
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import msgspec
from pyarrow import parquet

from use_st5._files import atomic_path, sole_writer
from use_st5._imports import require
from use_st5._records import parse_record
from use_st5.beam.model import ModelSource
from use_st5.beam.rows import BadRow
from use_st5.beam.transforms import Counted, VectorSink, beam, summed, vector_schema
from use_st5.beam.vectors import REPORT

_files: Any = require("apache_beam.io.filesystems", "beam").FileSystems

_TALLY = "tally.json"
_WRITTEN = r"vectors-\d+-of-\d+\.parquet|bad-\d+-of-\d+\.jsonl|embeddings\.json|tally\.json"
# The folder of a run, and the record that makes its files count.
_NEW, _RECORD = ".use_st5.new-", ".use_st5.new.json"
# Where a run keeps its files until all are written; version 0.2 did so without a folder.
_TEMPORARY = (
    f"{_NEW}*",
    *("beam-temp-vectors-*", "beam-temp-bad-*", "beam-temp-tally.json-*"),
)


class _Record(msgspec.Struct):
    """The new files of a run that are to take the places of the older ones."""

    run: Annotated[str, msgspec.Meta(pattern=rf"^{re.escape(_NEW)}[0-9a-f]+\Z")]
    files: list[Annotated[str, msgspec.Meta(pattern=rf"^({_WRITTEN})\Z")]]
    format: int = 1


class CorpusFolder:
    """Files of vectors, of bad rows, and the report that says they are whole.

    Args:
        folder: A path or a URL.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder.rstrip("/") or "/"
        self._local = None if "://" in folder else Path(folder)
        self._run = f"{_NEW}{secrets.token_hex(6)}"

    @contextlib.contextmanager
    def sole_writer(self) -> Iterator[None]:
        """The block alone writes the folder, which is made; elsewhere than on a disk no one knows.

        Raises:
            OSError: It cannot be made, or another process is writing it.
        """
        if self._local is None:
            yield
            return
        with sole_writer(self._local, inside=True):
            yield

    def make_room(self, *, overwrite: bool) -> None:
        """Ends what a killed run has left to do, and removes what it had not yet written whole.

        Older vectors stay until `finish`.

        Raises:
            FileExistsError: There are older vectors, and they are not to be replaced.
        """
        self._swap()
        older = self._names("")
        if older and not overwrite:
            raise FileExistsError(
                f"Expected a folder without vectors, found {self._path(min(older))}. Choose "
                "another folder, or give overwrite=True (--overwrite)."
            )
        self.remove_leftovers()

    def remove_leftovers(self) -> None:
        """Removes what killed runs have left on this machine's disk.

        Elsewhere another run may be at work, of which no lock tells.
        """
        if self._local is not None:
            for path in (each for name in _TEMPORARY for each in self._local.glob(name)):
                shutil.rmtree(path, ignore_errors=True)

    def write(self, read: Counted, embedded: Counted, source: ModelSource) -> None:
        """Adds the writing of what was made, of the bad rows and of the tally to the pipeline."""
        sink = VectorSink(self._new("vectors"), vector_schema(source))
        _ = embedded.made | "write vectors" >> beam.io.Write(sink)
        _ = (
            (read.bad, embedded.bad)
            | "all bad rows" >> beam.Flatten()
            | "as json" >> beam.Map(BadRow.as_json)
            | "write bad rows"
            >> beam.io.WriteToText(self._new("bad"), ".jsonl", skip_if_empty=True)
        )
        _ = (
            (read.tally, embedded.tally)
            | "all tallies" >> beam.Flatten()
            | "sum" >> beam.CombineGlobally(summed)
            | "tally as json" >> beam.Map(json.dumps)
            | "write tally"
            >> beam.io.WriteToText(self._new(_TALLY), num_shards=1, shard_name_template="")
        )

    def counted(self) -> dict[str, int]:
        """The numbers that a pipeline has ended with, by name.

        Raises:
            RuntimeError: The files of vectors have another number of rows.
        """
        with _files.open(self._new(_TALLY)) as file:
            tally = json.loads(file.read())
        rows = self._rows()
        if rows != tally.get("rows", 0):
            raise RuntimeError(
                f"Expected {tally['rows']:,} rows in {self._folder}, as many as were embedded, "
                f"found {rows:,}. Another process changed it; embed the corpus again."
            )
        return tally

    def _rows(self) -> int:
        """Rows in all files of vectors, by what each says at its end."""
        total = 0
        for name in self._names(self._run):
            if name.endswith(".parquet"):
                with _files.open(self._new(name)) as file:
                    total += parquet.read_metadata(file).num_rows
        return total

    def finish(self, report: str) -> None:
        """Writes the report, which holds the tally, and replaces the older files by the new ones.

        Raises:
            OSError: A file could not be moved: the next run does what is left.
        """
        _files.delete([self._new(_TALLY)])
        self._write(self._new(REPORT), report)
        files = sorted(self._names(self._run))
        record = msgspec.json.encode(_Record(self._run, files)).decode()
        self._write(self._path(_RECORD), record)
        self._swap()

    def _swap(self) -> None:
        """Puts the files that a record names in their places, where there is a record."""
        path = self._path(_RECORD)
        if not _files.exists(path):
            return
        with _files.open(path) as file:
            content = file.read()
        remedy = "Remove it, and embed the corpus again."
        record = parse_record(content, _Record, where=path, remedy=remedy)
        waiting = self._names(record.run).intersection(record.files)
        # Those that are no longer waiting are in their places.
        older = self._names("").difference(set(record.files) - waiting)
        for names in ([REPORT], sorted(older - {REPORT})):
            if gone := [self._path(name) for name in names if name in older]:
                _files.delete(gone)
        for names in (sorted(waiting - {REPORT}), [REPORT]):
            moved = [name for name in names if name in waiting]
            if moved:
                places = [self._path(name) for name in moved]
                _files.rename([self._path(record.run, name) for name in moved], places)
        _files.delete([path])
        self.remove_leftovers()

    def _write(self, path: str, text: str) -> None:
        if self._local is not None:
            with atomic_path(path) as temporary:
                temporary.write_text(text, encoding="utf-8")
            return
        with _files.create(path, mime_type="application/json") as file:
            file.write(text.encode())

    def _path(self, *names: str) -> str:
        return _files.join(self._folder, *filter(None, names))

    def _new(self, name: str) -> str:
        """The path of a file of this run."""
        return self._path(self._run, name)

    def _names(self, folder: str) -> set[str]:
        """The names of our files in the folder of a run; "": in their places."""
        found = _files.match([self._path(folder, "*")])[0].metadata_list
        names = {re.split(r"[/\\]", each.path)[-1] for each in found}
        return {name for name in names if re.fullmatch(_WRITTEN, name)}
