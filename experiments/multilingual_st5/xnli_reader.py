"""XNLI: one inference corpus in 15 languages with parallel rows, one file for each language."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from experiments.multilingual_st5.language_triplets import ParallelTriplets, parallel_triplets
from experiments.nli_reader import NLI_COLUMNS, nli_label
from use_st5.data import TableReader, records

_HEADS = {name for names in NLI_COLUMNS.values() for name in names}


def read_xnli(files: Mapping[str, str | Path]) -> ParallelTriplets:
    """The triplets of XNLI (Conneau et al. 2018), with each sentence in every language.

    Args:
        files: Language → file: `multinli.train.XX.tsv` of XNLI-MT 1.0, XTREME's `dev-XX.tsv`, which
            has no header, or any file that `NLIReader` reads. The files' rows are translations of
            each other.

    Raises:
        FileNotFoundError: A file is missing.
        ValueError: A row breaks the format (with its place), or the files are not parallel.
    """
    pairs = {language: _pairs(Path(file)) for language, file in files.items()}
    try:
        return parallel_triplets(pairs)
    except ValueError as error:
        raise ValueError(f"{', '.join(map(str, files.values()))}: {error}") from error


class _PairReader(TableReader):
    """Reads rows of pairs; rows with an empty text are kept, so that row numbers stay the same."""

    expects = "rows of premise, hypothesis and label"

    def _examples(self, row: dict[str, Any]) -> list[dict[str, Any]]:
        texts = {key: self._text(row, key) for key in self.columns if key != "label"}
        return [{**texts, "label": nli_label(row.get("label"))}]


def _pairs(file: Path) -> list[dict[str, Any]]:
    columns: dict[str, Any] = dict(
        NLI_COLUMNS if _has_header(file) else {"premise": 0, "hypothesis": 1, "label": 2}
    )
    return [*_PairReader(file, columns, optional=("premise", "hypothesis"), strict=True)]


def _has_header(file: Path) -> bool:
    """Whether the first row names the columns; always true for jsonl."""
    _, row = next(records(file), (0, []))
    return isinstance(row, dict) or (
        isinstance(row, list) and len({name.strip().casefold() for name in row} & _HEADS) > 1
    )
