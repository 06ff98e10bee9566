"""TensorFlow Datasets by name."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from use_st5._imports import require
from use_st5.data.tables import (
    MAX_MALFORMED,
    MalformedRowError,
    Reader,
    SkippedRowError,
    clean_row,
    row_keys,
    table_of,
)


class TFDSReader(Reader):
    """An iterable over the examples of a TensorFlow data set, as a stream.

    `TFDSReader("snli", split="train", columns={"premise": "premise", "hypothesis": "hypothesis",
    "label": "label"})`. Byte strings become `str`, integer and float scalars `int` and `float`,
    tensors NumPy arrays. A text that is no valid UTF-8 makes its example malformed: it is left out
    and counted; more than 1 % of such examples are an error.

    Args:
        name: Name as `tfds.load` takes it: "snli", "glue/mnli", "snli:1.1.0".
        split: One split, slices included: "train", "validation[:10%]".
        columns: Key of the example → key in the data set, "a/b" for nested ones; None: all keys of
            the outermost level as they are.
        data_dir: The folder with the prepared data sets; None: TFDS's own default.
        download: Whether a data set that is not there is downloaded and prepared.

    Attributes:
        report: The `ReadReport` of the latest pass; its offences name the split and the example's
            number from 1.

    Raises:
        ImportError: tensorflow-datasets is not installed (with the line that installs it).
        ValueError: The data set, the split or a column does not exist; during the pass: too many
            malformed examples.
    """

    expects = "texts in UTF-8"

    def __init__(
        self,
        name: str,
        *,
        split: str,
        columns: Mapping[str, str] | None = None,
        data_dir: str | Path | None = None,
        download: bool = False,
    ) -> None:
        super().__init__([Path(f"{name}[{split}]")])
        self._tfds = require("tensorflow_datasets", "data")
        self.split = split
        try:
            self._builder = self._tfds.builder(name, data_dir=data_dir and str(data_dir))
        except (self._tfds.core.DatasetNotFoundError, ValueError) as error:
            # The rest of TFDS's message is a list of a thousand names.
            reason = str(error).split("\n")[0]
            text = f"Expected the name of a TensorFlow data set, received {name!r}: {reason}"
            raise ValueError(text) from error
        if download:
            # TFDS 4.9.10 needs it for any download and does not declare it (etils 1.15 neither).
            require("importlib_resources", "data")
            self._builder.download_and_prepare()
        features, splits = self._builder.info.features, dict(self._builder.info.splits)
        if not splits:
            raise ValueError(
                f"{name} is not prepared in {self._builder.data_path}. Prepare it (tfds build "
                f"{name}, or download=True), or name its folder (data_dir, or TFDS_DATA_DIR)."
            )
        if split.split("[")[0] not in {*splits, "all"} and "+" not in split:
            raise ValueError(f"{name} has the splits {[*splits]}, received {split!r}.")
        self.columns = dict(columns) if columns is not None else {key: key for key in features}
        for path in self.columns.values():
            try:
                functools.reduce(operator.getitem, path.split("/"), features)
            except (KeyError, TypeError):
                text = f"{name} has no column {path!r}. Its columns: {[*features]}."
                raise ValueError(text) from None

    def _rows(self, path: Path) -> Iterator[tuple[int, Any]]:
        dataset = self._builder.as_dataset(split=self.split, shuffle_files=False)
        for number, raw in enumerate(self._tfds.as_numpy(dataset), start=1):
            try:
                values = {
                    key: _value(functools.reduce(operator.getitem, column.split("/"), raw))
                    for key, column in self.columns.items()
                }
            except UnicodeDecodeError:
                yield number, MalformedRowError("invalid utf-8")
            else:
                yield number, values

    def _examples(self, row: dict[str, Any]) -> list[dict[str, Any]]:
        return [row]

    def class_names(self, column: str) -> list[str] | None:
        """Returns the names of the classes of an outermost column; None if it has no classes."""
        return getattr(self._builder.info.features[column], "names", None)


class DataSet(TFDSReader):
    """The rows of a TensorFlow data set, in the same form as `Table` gives those of a file.

    The name is `NAME[SPLIT]`, the usual split "train". Labels become the names of their classes; -1
    means a hidden class, whose rows are skipped.
    """

    warns = False

    def __init__(
        self,
        name: str,
        columns: Mapping[str, str] | None = None,
        *,
        label: str | None = None,
        score: str | None = None,
        flags: Sequence[str] = (),
    ) -> None:
        data_set, _, split = name.removesuffix("]").partition("[")
        super().__init__(data_set, split=split or "train", columns=columns)
        self.paths, self.max_malformed = [Path(name)], MAX_MALFORMED
        self.expects = f"rows with {', '.join(self.columns)}"
        self.label, self.score, self.flags, self.content = label, score, flags, name
        self._classes = self.class_names(self.columns[label]) if label and not flags else None

    def read(self) -> pa.Table:
        """Reads it once, as `Table.read`."""
        return table_of(self, row_keys(self.columns, self.label, self.flags), self.score)

    def _examples(self, row: dict[str, Any]) -> list[dict[str, Any]]:
        if self.label and not self.flags:
            places = np.asarray(row[self.label])
            if places.dtype.kind == "i" and (places == -1).any():
                raise SkippedRowError("no label")
            if self._classes:
                row = row | {self.label: np.array(self._classes, object)[places]}
        return [clean_row(row, self.columns, self.label, self.score, self.flags)]


def _value(value: Any) -> Any:
    """A value of NumPy as one of Python; arrays of numbers stay."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, dict):
        return {key: _value(item) for key, item in value.items()}
    if isinstance(value, np.ndarray) and value.dtype == object:
        return [_value(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value
