"""Labelled sentences and pairs of sentences, and the published text files that hold them.

Each reader raises a FileNotFoundError, or a ValueError that names file and line.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from use_st5.data.data_folder import DataFolder, DataSource
from use_st5.encode.vector_store import VectorCache
from use_st5.io.lines import read_text


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


Read = Callable[[Path], LabelledTexts]
Files = tuple[tuple[DataSource, Read], ...]


@dataclass(frozen=True)
class LabelledDataset:
    """A published data set: the files of its parts, and how each is read.

    Without a test set, the files of `train` have all rows.
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


def joined(parts: Sequence[LabelledTexts]) -> LabelledTexts:
    """All rows of the parts, in order."""
    columns = zip(*(part.columns for part in parts), strict=True)
    return LabelledTexts(
        tuple([text for column in pieces for text in column] for pieces in columns),
        np.concatenate([part.labels for part in parts]),
        sum(part.broken_lines for part in parts),
    )


def labelled_texts(
    path: Path, rows: Sequence[tuple[float, Sequence[str]]], *, broken_lines: int = 0
) -> LabelledTexts:
    """The rows of a file, each a label and its sentences."""
    if not rows:
        raise ValueError(f"{path}: expected labelled sentences, found none.")
    labels, sentences = zip(*rows, strict=True)
    columns = tuple([*column] for column in zip(*sentences, strict=True))
    return LabelledTexts(columns, np.array(labels), broken_lines)


def read_table(
    path: Path,
    texts: Sequence[str | int],
    label: str | int,
    classes: tuple[str, ...] = (),
    *,
    most_broken: int = 0,
) -> LabelledTexts:
    """Reads labelled texts from a tab-separated table without quoting, as all of GLUE's are.

    Args:
        path: The file.
        texts: The columns of the sentences: names in the header, or numbers from 0 without header.
        label: The column of the label, in the same way.
        classes: The classes in the order of their numbers; a label is a name or a number. Empty if
            the label is a score.
        most_broken: Up to this many lines with a wrong number of fields are left out.
    """
    records, broken = read_columns(path, (*texts, label), most_broken=most_broken)
    numbers = {str(number): number for number in range(len(classes))}
    numbers |= {name: number for number, name in enumerate(classes)}
    rows: list[tuple[float, list[str]]] = []
    for line, (*sentences, text) in records:
        if not classes:
            value = parse_score(path, line, text)
        elif (value := numbers.get(text.strip(), -1)) < 0:
            hint = "; GLUE's test files have no labels" if text.strip() == "-1" else ""
            expected = f"expected a label ({', '.join(classes)} or its number)"
            raise ValueError(f"{path}:{line}: {expected}, received {text.strip()!r}{hint}.")
        rows.append((value, [sentence.strip() for sentence in sentences]))
    return labelled_texts(path, rows, broken_lines=broken)


def read_columns(
    path: Path, columns: Sequence[str | int], *, most_broken: int = 0
) -> tuple[list[tuple[int, list[str]]], int]:
    """Line numbers and fields of columns, and the number of broken lines, as in `read_table`."""
    lines = iter(numbered_lines(path))
    places = [column for column in columns if isinstance(column, int)]
    count, exactly = max(places, default=0) + 1, not places
    if not places:
        number, line = next(lines, (1, ""))
        header = line.split("\t")
        if missing := [str(column) for column in columns if column not in header]:
            expected = f"expected the columns {', '.join(map(str, columns))}"
            raise ValueError(f"{path}:{number}: {expected}; {', '.join(missing)} missing.")
        places, count = [header.index(str(column)) for column in columns], len(header)
    rows, broken = [], 0
    for number, line in lines:
        try:
            fields = split_fields(path, number, line, count, exactly=exactly)
        except ValueError:
            broken += 1
            if broken > most_broken:
                raise
        else:
            rows.append((number, [fields[place] for place in places]))
    return rows, broken


def split_fields(
    path: Path, number: int, line: str, count: int, *, exactly: bool = False
) -> list[str]:
    """The tab-separated fields of a line, at least or exactly `count`."""
    fields = line.split("\t")
    if len(fields) < count or (exactly and len(fields) > count):
        expected = f"{'' if exactly else 'at least '}{count} tab-separated fields"
        received = f"{len(fields)}: {line[:80]!r}"
        raise ValueError(f"{path}:{number}: expected {expected}, received {received}")
    return fields


def numbered_lines(path: Path, *, encoding: str = "utf-8") -> list[tuple[int, str]]:
    """Line numbers, from 1, and the lines that are not blank."""
    return [(number, line) for number, line in read_text(path, encoding) if line.strip()]


def read_side_by_side(
    path: Path, other: Path, *, first: int | None = None
) -> list[tuple[int, str, str]]:
    """Line numbers and matching lines of two files; of the `first` lines of `path` if given."""
    lines, others = [*read_text(path, "utf-8")][:first], [*read_text(other, "utf-8")]
    if len(lines) != len(others):
        expected = f"expected {len(lines)} lines, as many as {path.name} has"
        raise ValueError(f"{other}: {expected}, received {len(others)}.")
    return [(number, line, text) for (number, line), (_, text) in zip(lines, others, strict=True)]


def parse_score(path: Path, number: int, text: str) -> float:
    """A score of similarity or relatedness: 0 to 5 in all sets since SemEval 2012."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= 5:
        raise ValueError(f"{path}:{number}: expected a score from 0 to 5, received {text!r}.")
    return value
