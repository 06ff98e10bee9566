"""Where a tab-separated file has its sentences and its labels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from use_st5.evaluation._text_files import numbered_lines, parse_score, split_fields
from use_st5.evaluation.glue.labelled_texts import LabelledTexts


@dataclass(frozen=True)
class TableLayout:
    """The columns of a tab-separated table without quoting, as all of GLUE's are.

    Attributes:
        texts: The columns of the sentences: names in the header, or numbers, from 0, where the
            table has no header.
        label: The column of the label, in the same way.
        classes: The names of the classes in the order of their numbers; labels are written as
            either. Empty where the label is a score.
        most_broken: A table with at most so many lines of more or fewer fields than its header is
            read without them; with more it is not in its format.
    """

    texts: tuple[str, ...] | tuple[int, ...]
    label: str | int
    classes: tuple[str, ...] = ()
    most_broken: int = 0

    def read(self, *paths: str | Path) -> LabelledTexts:
        """Reads files, one after the other.

        Raises:
            FileNotFoundError: There is no such file.
            ValueError: A column is missing in a header, a line has too few or too many fields, a
                label is unknown; there are no rows.
        """
        columns: tuple[list[str], ...] = tuple([] for _ in self.texts)
        labels: list[float] = []
        broken = 0
        for path in map(Path, paths):
            before = len(labels)
            for number, fields in self._rows(path):
                if fields is None:
                    broken += 1
                    continue
                labels.append(self._label(path, number, fields[-1]))
                for column, text in zip(columns, fields[:-1], strict=True):
                    column.append(text.strip())
            if len(labels) == before:
                raise ValueError(f"{path}: expected rows with sentences and labels, found none.")
        kind = np.int64 if self.classes else np.float64
        return LabelledTexts(columns, np.array(labels, kind), broken)

    def _rows(self, path: Path) -> Iterator[tuple[int, list[str] | None]]:
        """Line numbers and their sentences and label; None for a line that is left out."""
        lines = numbered_lines(path)
        if self._has_header:
            header = next(lines, (1, ""))[1].split("\t")
            places, least, most = self._places(path, header), len(header), len(header)
        else:
            places, least, most = self._numbers, max(self._numbers) + 1, None
        broken = 0
        for number, line in lines:
            try:
                fields = split_fields(path, number, line, at_least=least, at_most=most)
            except ValueError as error:
                broken += 1
                if broken > self.most_broken:
                    limit = f" At most {self.most_broken} such lines are left out."
                    raise ValueError(f"{error}{limit * bool(self.most_broken)}") from error
                yield number, None
            else:
                yield number, [fields[place] for place in places]

    @property
    def _has_header(self) -> bool:
        return isinstance(self.label, str)

    @property
    def _numbers(self) -> list[int]:
        return [int(column) for column in (*self.texts, self.label)]

    def _places(self, path: Path, names: list[str]) -> list[int]:
        wanted = [str(column) for column in (*self.texts, self.label)]
        if missing := [column for column in wanted if column not in names]:
            raise ValueError(
                f"{path}:1: expected the columns {', '.join(wanted)}; {', '.join(missing)} missing "
                f"in the header {names}."
            )
        return [names.index(column) for column in wanted]

    def _label(self, path: Path, number: int, text: str) -> float:
        if not self.classes:
            return parse_score(path, number, text)
        if text in self.classes:
            return self.classes.index(text)
        if text in map(str, range(len(self.classes))):
            return int(text)
        known = ", ".join(f"{name} or {index}" for index, name in enumerate(self.classes))
        hint = " GLUE's test files have no labels: take its dev file." if text == "-1" else ""
        raise ValueError(f"{path}:{number}: expected a label ({known}), received {text!r}.{hint}")
