"""Labelled sentences and pairs of sentences, and the published files that hold them.

A reader raises a FileNotFoundError, or a ValueError that names file and line.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from use_st5.data.data_folder import DataFolder, DataSource
from use_st5.encode.vector_store import VectorCache
from use_st5.evaluation._text_files import parse_score, read_columns


@dataclass(frozen=True, eq=False)
class LabelledTexts:
    """The rows of one part of a data set.

    Attributes:
        columns: The first sentences and, if the task is about pairs, the second ones.
        labels: `[rows]`: class numbers (int64), or scores (float64).
        broken_lines: Number of lines of the file that were left out because fields were missing.
    """

    columns: tuple[list[str], ...]
    labels: np.ndarray
    broken_lines: int = 0

    def __post_init__(self) -> None:
        lengths = {len(column) for column in self.columns}
        if lengths != {len(self.labels)}:
            raise ValueError(
                "Expected as many labels as sentences in each column, received "
                f"{len(self.labels)} labels and columns of {sorted(lengths)} sentences."
            )

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.labels)

    def rows(self, chosen: np.ndarray) -> LabelledTexts:
        """The rows that a mask or row numbers choose; in the order of the numbers."""
        numbers = np.arange(len(self))[chosen].tolist()
        columns = tuple([column[row] for row in numbers] for column in self.columns)
        return LabelledTexts(columns, self.labels[numbers], self.broken_lines)

    def embedded(self, embed: VectorCache) -> list[np.ndarray]:
        """The embeddings `[rows, dim]` of each column.

        An empty sentence (QQP has some) is embedded as ".", as in SentEval's examples, because not
        every encoder has a vector for an empty text.
        """
        return [embed([sentence or "." for sentence in column]) for column in self.columns]


def labelled_texts(
    path: Path, rows: Sequence[tuple[float, Sequence[str]]], *, broken_lines: int = 0
) -> LabelledTexts:
    """The rows of a file, each a label and its sentences."""
    if not rows:
        raise ValueError(f"{path}: expected labelled sentences, found none.")
    labels, sentences = zip(*rows, strict=True)
    columns = tuple([*column] for column in zip(*sentences, strict=True))
    return LabelledTexts(columns, np.array(labels), broken_lines)


@dataclass(frozen=True)
class TableLayout:
    """The columns of a tab-separated table without quoting, as all of GLUE's are.

    Attributes:
        texts: The columns of the sentences: names in the header, or numbers, from 0, if the table
            has no header.
        label: The column of the label, in the same way.
        classes: The names of the classes in the order of their numbers; a label is a name or a
            number. Empty if the label is a score.
        most_broken: Lines with more or fewer fields than the header are left out if there are at
            most this many; a table with more of them is refused.
    """

    texts: tuple[str, ...] | tuple[int, ...]
    label: str | int
    classes: tuple[str, ...] = ()
    most_broken: int = 0

    def read(self, path: str | Path) -> LabelledTexts:
        """Reads a file."""
        path, columns = Path(path), (*self.texts, self.label)
        broken: list[int] = []
        records = read_columns(path, columns, most_broken=self.most_broken, broken=broken)
        rows = [
            (self._label(path, number, label), [text.strip() for text in texts])
            for number, (*texts, label) in records
        ]
        return labelled_texts(path, rows, broken_lines=len(broken))

    def _label(self, path: Path, number: int, text: str) -> float:
        text = text.strip()
        if not self.classes:
            return parse_score(path, number, text)
        if text in self.classes:
            return self.classes.index(text)
        if text in map(str, range(len(self.classes))):
            return int(text)
        choices = ", ".join(f"{name} or {index}" for index, name in enumerate(self.classes))
        hint = " GLUE's test files have no labels: take its dev file." if text == "-1" else ""
        raise ValueError(f"{path}:{number}: expected a label ({choices}), received {text!r}.{hint}")


Read = Callable[[Path], LabelledTexts]
Files = tuple[tuple[DataSource, Read], ...]


def joined(parts: Sequence[LabelledTexts]) -> LabelledTexts:
    """All rows of the parts, in order."""
    columns = zip(*(part.columns for part in parts), strict=True)
    return LabelledTexts(
        tuple([text for column in pieces for text in column] for pieces in columns),
        np.concatenate([part.labels for part in parts]),
        sum(part.broken_lines for part in parts),
    )


@dataclass(frozen=True)
class LabelledDataset:
    """A published data set: the files of its parts, and how each is read.

    Attributes:
        name: For example "MR".
        train: The files of the training rows; of all rows if there is no test set.
        dev: The files of the dev rows; empty if there are none.
        test: The files of the test rows; empty if there are none.
    """

    name: str
    train: Files
    dev: Files = ()
    test: Files = ()

    @property
    def sources(self) -> tuple[DataSource, ...]:
        """All files."""
        return tuple(source for source, _ in (*self.train, *self.dev, *self.test))

    def read(self, data: DataFolder) -> dict[str, LabelledTexts]:
        """Reads the parts that the data set has: "train", "dev" and "test" at most."""
        parts = ("train", "dev", "test")
        return {part: self.read_part(data, part) for part in parts if getattr(self, part)}

    def read_part(self, data: DataFolder, part: str) -> LabelledTexts:
        """Reads "train", "dev" or "test"; the rows of the second file follow those of the first."""
        return joined([read(data.find(source)) for source, read in getattr(self, part)])
