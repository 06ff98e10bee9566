"""Reading published text files line by line.

A reader raises a FileNotFoundError, or a ValueError that names file and line.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Sequence
from pathlib import Path

from use_st5.io.lines import read_text

_HIGHEST_SCORE = 5


def read_lines(path: str | Path, *, encoding: str = "utf-8") -> list[str]:
    """All lines of a file, including empty ones; one empty line if the file is empty."""
    return [line for _, line in read_text(Path(path), encoding)] or [""]


def read_side_by_side(
    path: str | Path, other: str | Path, *, first: int | None = None
) -> list[tuple[int, str, str]]:
    """Line numbers, from 1, and the matching lines of two parallel files.

    If `first` is given, only the first `first` lines of `path` have a matching line in `other`.
    """
    path, other = Path(path), Path(other)
    lines, other_lines = read_lines(path)[:first], read_lines(other)
    if len(lines) != len(other_lines):
        shorter, longer = (path, other) if len(lines) < len(other_lines) else (other, path)
        number = min(len(lines), len(other_lines)) + 1
        raise ValueError(
            f"{shorter}:{number}: expected what belongs to line {number} of {longer.name}, "
            "received the end of the file."
        )
    numbers = range(1, len(lines) + 1)
    return list(zip(numbers, lines, other_lines, strict=True))


def numbered_lines(path: str | Path, *, encoding: str = "utf-8") -> Iterator[tuple[int, str]]:
    """Line numbers, from 1, and the lines that are not blank."""
    for number, line in enumerate(read_lines(path, encoding=encoding), start=1):
        if line.strip():
            yield number, line


def split_fields(
    path: Path, number: int, line: str, *, at_least: int, at_most: int | None = None
) -> list[str]:
    """The tab-separated fields of a line."""
    fields = line.split("\t")
    if len(fields) < at_least or (at_most is not None and len(fields) > at_most):
        expected = f"{at_least}" if at_least == at_most else f"at least {at_least}"
        raise ValueError(
            f"{path}:{number}: expected {expected} tab-separated fields, received {len(fields)}: "
            f"{line[:80]!r}"
        )
    return fields


def read_columns(
    path: str | Path,
    columns: Sequence[str | int],
    *,
    most_broken: int = 0,
    broken: list[int] | None = None,
) -> Iterator[tuple[int, list[str]]]:
    """Line numbers and the fields of `columns`, in this order.

    The file is tab-separated without quoting, as GLUE and SICK are. Columns are names in the
    header, or numbers, from 0, if the table has no header. At most `most_broken` lines with too few
    or too many fields are left out; their numbers are added to `broken`.
    """
    path, broken = Path(path), [] if broken is None else broken
    lines = numbered_lines(path)
    places = [column for column in columns if isinstance(column, int)]
    least, most = max(places, default=0) + 1, None
    if not places:
        number, line = next(lines, (1, ""))
        header = line.split("\t")
        if missing := [str(column) for column in columns if column not in header]:
            raise ValueError(
                f"{path}:{number}: expected the columns {', '.join(map(str, columns))}; "
                f"{', '.join(missing)} missing in the header {header}."
            )
        places = [header.index(str(column)) for column in columns]
        least = most = len(header)
    for number, line in lines:
        try:
            fields = split_fields(path, number, line, at_least=least, at_most=most)
        except ValueError as error:
            broken.append(number)
            if len(broken) > most_broken:
                limit = f" At most {most_broken} such lines are left out." if most_broken else ""
                raise ValueError(f"{error}{limit}") from error
        else:
            yield number, [fields[place] for place in places]


def parse_score(path: Path, number: int, text: str) -> float:
    """A score of similarity or relatedness: 0 to 5 in all sets since SemEval 2012."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= _HIGHEST_SCORE:
        raise ValueError(
            f"{path}:{number}: expected a score from 0 to {_HIGHEST_SCORE}, received {text!r}."
        )
    return value


def check_new_id(path: Path, number: int, one: str, known: Container[str]) -> None:
    """Refuses an id that is repeated."""
    if one in known:
        raise ValueError(f"{path}:{number}: expected a new id, received {one!r} again.")
