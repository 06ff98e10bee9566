"""The folder that a corpus's vectors are written to, on any file system that Beam has."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from use_st5._files import atomic_path, sole_writer
from use_st5._imports import require
from use_st5.beam.model import ModelSource
from use_st5.beam.rows import BadRow
from use_st5.beam.transforms import Counted, VectorSink, beam, summed, vector_schema
from use_st5.beam.vectors import REPORT

_files: Any = require("apache_beam.io.filesystems", "beam").FileSystems
_parquet: Any = require("pyarrow.parquet", "beam")

_TALLY = "tally.json"
_WRITTEN = ("vectors-*-of-*.parquet", "bad-*-of-*.jsonl", REPORT, _TALLY)
# Where a run keeps its files until all are written.
_TEMPORARY = ("beam-temp-vectors-*", "beam-temp-bad-*", "beam-temp-tally.json-*")


class CorpusFolder:
    """Files of vectors, of bad rows, and the report that says they are whole.

    Args:
        folder: A path or a URL.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder.rstrip("/") or "/"
        self._local = None if "://" in folder else Path(folder)

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
        """Removes older vectors, and what killed runs have left.

        Raises:
            FileExistsError: There are older vectors, and they are not to be replaced.
        """
        older = [path for name in _WRITTEN for path in self._match(name)]
        if older and not overwrite:
            raise FileExistsError(
                f"Expected a folder without vectors, found {older[0]}. Choose another folder, or "
                "give overwrite=True (--overwrite)."
            )
        if older:
            _files.delete(older)
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
        sink = VectorSink(self._path("vectors"), vector_schema(source))
        _ = embedded.made | "write vectors" >> beam.io.Write(sink)
        _ = (
            (read.bad, embedded.bad)
            | "all bad rows" >> beam.Flatten()
            | "as json" >> beam.Map(BadRow.as_json)
            | "write bad rows"
            >> beam.io.WriteToText(self._path("bad"), ".jsonl", skip_if_empty=True)
        )
        _ = (
            (read.tally, embedded.tally)
            | "all tallies" >> beam.Flatten()
            | "sum" >> beam.CombineGlobally(summed)
            | "tally as json" >> beam.Map(json.dumps)
            | "write tally"
            >> beam.io.WriteToText(self._path(_TALLY), num_shards=1, shard_name_template="")
        )

    def counted(self) -> dict[str, int]:
        """The numbers that a pipeline has ended with, by name.

        Raises:
            RuntimeError: The files of vectors have another number of rows.
        """
        with _files.open(self._path(_TALLY)) as file:
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
        for path in self._match("vectors-*-of-*.parquet"):
            with _files.open(path) as file:
                total += _parquet.read_metadata(file).num_rows
        return total

    def finish(self, report: str) -> None:
        """Writes the report, which holds the tally."""
        _files.delete([self._path(_TALLY)])
        if self._local is not None:
            with atomic_path(self._local / REPORT) as temporary:
                temporary.write_text(report, encoding="utf-8")
            return
        with _files.create(self._path(REPORT), mime_type="application/json") as file:
            file.write(report.encode())

    def _path(self, name: str) -> str:
        return _files.join(self._folder, name)

    def _match(self, name: str) -> list[str]:
        return [each.path for each in _files.match([self._path(name)])[0].metadata_list]
