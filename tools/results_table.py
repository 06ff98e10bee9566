"""Collects the JSON records of a folder of runs in one table: a row for each number.

    python tools/results_table.py RUNS results/own_data.csv

The columns are the run (the path of its record below RUNS, without the seed at its end), the seed,
the name of the value, and the value. A record of `use-st5 evaluate` gives the time and the command
of the run, and for each task its scores, counts and details. Of nested values, the name is the
path, with numbers for the places in a list.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

COLUMNS = ("run", "seed", "name", "value")
# What only repeats the code, or names a file of the run.
_LEFT_OUT = {
    "format",
    "group",
    "title",
    "protocol",
    "options",
    "main",
    "data",
    "versions",
    "weights",
}


def rows(folder: Path) -> Iterator[tuple[str, str, str, Any]]:
    """The rows of all records in a folder, by run and seed."""
    for path in sorted(folder.rglob("*.json")):
        run = path.relative_to(folder).with_suffix("").as_posix()
        named = re.fullmatch(r"(.+?)_(\d+)(/\w+)?", run)
        stem, seed = (named[1] + (named[3] or ""), named[2]) if named else (run, "")
        for name, value in _flat(json.loads(path.read_text(encoding="utf-8"))):
            yield stem, seed, name, value


def _flat(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, list):
        value = {str(place): each for place, each in enumerate(value)}
    if not isinstance(value, dict):
        yield name, value
        return
    for key, each in value.items():
        if key not in _LEFT_OUT:
            yield from _flat(each, f"{name}/{key}" if name else key)


def main() -> None:
    """Reads the arguments and writes the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("runs", type=Path, help="folder of the records")
    parser.add_argument("table", type=Path, help="the CSV file to write")
    options = parser.parse_args()
    with options.table.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(rows(options.runs))


if __name__ == "__main__":
    main()
