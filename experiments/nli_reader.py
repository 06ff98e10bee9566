"""Natural language inference files: SNLI, MultiNLI, XNLI and corpora that follow their formats."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from experiments.published_corpus import Example

NLI_LABELS = ("entailment", "neutral", "contradiction")
# Key → its names in the published files, the first of which counts.
_NAMES = {
    "premise": ("premise", "sentence1", "prem"),
    "hypothesis": ("hypothesis", "sentence2", "hyp", "hypo"),
    "label": ("gold_label", "label"),
}
# Words, their first letters, and "contradictory", as XNLI's translations of MultiNLI have it.
_LABELS = {key: n for n, word in enumerate(NLI_LABELS) for key in (word, word[0], n)}
_LABELS["contradictory"] = 2
# The annotators had no majority (SNLI, MultiNLI); a hidden test label.
_NO_LABEL = ("-", -1, "-1")


def read_nli(files: Iterable[Path]) -> Iterator[Example]:
    """Reads `{"premise": str, "hypothesis": str, "label": int}` from NLI files.

    Labels are 0 entailment, 1 neutral, 2 contradiction. Files: the official jsonl and tab-separated
    txt of SNLI (Bowman et al. 2015) and MultiNLI (Williams et al. 2018), GLUE's tsv, and others
    with the columns premise or sentence1 or prem, hypothesis or sentence2 or hyp or hypo,
    gold_label or label. Rows without a gold label or without a text are left out.
    """
    for file in files:
        for pair in nli_pairs(file):
            if pair["label"] is not None and pair["premise"] and pair["hypothesis"]:
                yield pair


def nli_pairs(file: Path) -> Iterator[Example]:
    """All rows of a file, with None for a label that is not there.

    A table without a header, such as XTREME's `dev-XX.tsv`, has premise, hypothesis and label.
    """
    with file.open(encoding="utf-8-sig", newline="\n") as lines:
        for number, row in enumerate(_rows(file, lines), start=1):
            try:
                label = row["label"]
                label = label.strip().casefold() if isinstance(label, str) else label
                yield {
                    "premise": row["premise"].strip(),
                    "hypothesis": row["hypothesis"].strip(),
                    "label": None if label in _NO_LABEL else _LABELS[label],
                }
            except (KeyError, AttributeError, TypeError) as error:
                raise ValueError(
                    f"{file}: expected premise, hypothesis and a label among "
                    f"{', '.join(NLI_LABELS)} in row {number}, received {row}."
                ) from error


def _rows(file: Path, lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    if file.suffix == ".jsonl":
        yield from (_named(json.loads(line)) for line in lines if line.strip())
        return
    tables = (line.rstrip("\r\n").split("\t") for line in lines)
    first = next(tables, [])
    header = first if len(_named(dict.fromkeys(first))) == len(_NAMES) else [*_NAMES]
    if header is not first:
        yield dict(zip(header, first, strict=False))
    yield from (_named(dict(zip(header, fields, strict=False))) for fields in tables)


def _named(row: Mapping[str, Any]) -> dict[str, Any]:
    """The three columns of a row by their keys."""
    columns = {name.strip().casefold(): value for name, value in row.items()}
    known = {key: [name for name in names if name in columns] for key, names in _NAMES.items()}
    return {key: columns[names[0]] for key, names in known.items() if names}
