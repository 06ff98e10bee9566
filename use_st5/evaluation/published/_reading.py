"""Reads one file of published tables and checks it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import MISSING, fields
from importlib.resources.abc import Traversable
from types import MappingProxyType
from typing import Any

from use_st5.evaluation.published.published_paper import PublishedPaper
from use_st5.evaluation.published.published_row import PublishedRow
from use_st5.evaluation.published.published_table import PublishedTable

_UNITS = ("x100", "1")
# What JSON calls the types that the data classes are made of.
_KINDS = {"str": str, "int": int, "bool": bool, "Mapping[str, float]": dict}
_KINDS["tuple[PublishedRow, ...]"] = list


def read_published(file: Traversable) -> tuple[PublishedTable, ...]:
    """Reads the tables of one paper: `{"paper": {…}, "tables": [{…, "rows": [{…}]}]}`.

    The keys are the attributes of `PublishedPaper`, `PublishedTable` and `PublishedRow`.

    Args:
        file: A JSON file in UTF-8.

    Raises:
        ValueError: It is no JSON; a key is missing, unknown or of the wrong type; a unit is
            unknown; a table has no rows or a row no scores; a score is no finite number or too
            large for its unit; a row stands twice in a table. The message names file and place.
    """
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise ValueError(
            f"{file.name}:{error.lineno}: expected JSON, received: {error.msg}."
        ) from error
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{file.name}: expected JSON in UTF-8, received: {error}.") from error
    where = file.name
    if not isinstance(content, dict) or content.keys() != {"paper", "tables"}:
        raise ValueError(f'{where}: expected an object with the keys "paper" and "tables".')
    _expect(isinstance(content["tables"], list), f"{where}: tables", "a list", content["tables"])
    paper = PublishedPaper(**_checked(PublishedPaper, content["paper"], f"{where}: paper"))
    return tuple(
        _read_table(paper, table, f"{where}: tables[{number}]")
        for number, table in enumerate(content["tables"])
    )


def _read_table(paper: PublishedPaper, content: Any, where: str) -> PublishedTable:
    values = _checked(PublishedTable, content, where, given="paper")
    unit = values["unit"]
    _expect(unit in _UNITS, f"{where}: unit", " or ".join(map(repr, _UNITS)), unit)
    _expect(bool(values["rows"]), f"{where}: rows", "at least one", values["rows"])
    seen: set[tuple[str, str, str]] = set()
    rows = []
    for number, row in enumerate(_read_rows(values["rows"], unit, f"{where}: rows")):
        name = (row.model, row.settings, row.source)
        _expect(name not in seen, f"{where}: rows[{number}]", "each row once", row.model)
        seen.add(name)
        rows.append(row)
    return PublishedTable(**{**values, "paper": paper, "rows": tuple(rows)})


def _read_rows(contents: list[Any], unit: str, where: str) -> Iterator[PublishedRow]:
    largest = 100 if unit == "x100" else 2  # 2: no effect size can be larger
    for number, content in enumerate(contents):
        place = f"{where}[{number}]"
        values = _checked(PublishedRow, content, place)
        scores = values["scores"]
        _expect(bool(scores), f"{place}: scores", "at least one", scores)
        for task, score in scores.items():
            number_given = type(score) in (int, float) and math.isfinite(score)
            fits = number_given and abs(score) <= largest
            _expect(fits, f"{place}: scores: {task}", f"a number up to {largest}", score)
        frozen = MappingProxyType({task: float(score) for task, score in scores.items()})
        yield PublishedRow(**{**values, "scores": frozen})


def _checked(kind: type, content: Any, where: str, *, given: str = "") -> dict[str, Any]:
    """Returns the content if its keys and their types are those of a data class but `given`."""
    _expect(isinstance(content, dict), where, "an object", content)
    known = {field.name: field for field in fields(kind) if field.name != given}
    needed = {name for name, field in known.items() if field.default is MISSING}
    missing = ", ".join(sorted(needed - content.keys()))
    _expect(not missing, where, f"the keys {missing}", sorted(content))
    unknown = ", ".join(sorted(content.keys() - known.keys()))
    _expect(not unknown, where, f"no keys but {', '.join(known)}", unknown)
    for name, value in content.items():
        expected = _KINDS[known[name].type]
        _expect(type(value) is expected, f"{where}: {name}", f"a {expected.__name__}", value)
    return content


def _expect(holds: bool, where: str, expected: str, received: object) -> None:
    if not holds:
        raise ValueError(f"{where}: expected {expected}, received {received!r}.")
