"""XNLI: one inference corpus in 15 languages with parallel rows, in its published formats."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from experiments.multilingual_st5.language_triplets import ParallelTriplets, parallel_triplets
from experiments.nli_reader import NLI_COLUMNS, NLIReader, nli_label
from use_st5.data._records import format_of, records
from use_st5.data.table_reader import Column, TableReader

_HEADS = {name for names in NLI_COLUMNS.values() for name in names}


def read_xnli(
    source: str | Path | Mapping[str, str | Path], *, labels: str | Path | None = None
) -> ParallelTriplets:
    """The triplets of XNLI (Conneau et al. 2018), with each sentence in every language.

    Args:
        source: The official `xnli.dev.tsv` or `xnli.dev.jsonl` of XNLI 1.0, which holds all
            languages; or language → file: `multinli.train.XX.tsv` of XNLI-MT 1.0, XTREME's
            `dev-XX.tsv` and `test-XX.tsv`, which have no header, or any file that `NLIReader`
            reads. The files' rows are translations of each other.
        labels: For files without labels, such as XTREME's `test-XX.tsv`: a file with the labels of
            the same rows, such as KorNLI's `xnli.test.ko.tsv`.

    Raises:
        FileNotFoundError: A file is missing.
        ValueError: A row breaks the format (with its place), a file has no labels and none are
            given, or the files are not parallel.
    """
    if not isinstance(source, Mapping):
        return _official(Path(source))
    row_labels = (
        None if labels is None else [pair["label"] for pair in NLIReader(labels, strict=True)]
    )
    pairs = {language: _pairs(Path(file), row_labels) for language, file in source.items()}
    return _joined(", ".join(map(str, source.values())), pairs)


def _joined(
    files: str, pairs: Mapping[str, list[dict[str, Any]]], prompts: list[Any] | None = None
) -> ParallelTriplets:
    try:
        return parallel_triplets(pairs, prompts)
    except ValueError as error:
        raise ValueError(f"{files}: {error}") from error


class _PairReader(TableReader):
    """Reads rows of pairs; rows with an empty text are kept, so that row numbers stay the same."""

    expects = "rows of premise, hypothesis and, unless it is given, a label"

    def _examples(self, row: dict[str, Any]) -> list[dict[str, Any]]:
        example: dict[str, Any] = {
            key: self._text(row, key) for key in self.columns if key != "label"
        }
        if "label" in self.columns:
            example["label"] = nli_label(row.get("label"))
        return [example]


def _pairs(file: Path, labels: list[int] | None) -> list[dict[str, Any]]:
    columns: dict[str, Column] = dict(
        NLI_COLUMNS if _has_header(file) else {"premise": 0, "hypothesis": 1, "label": 2}
    )
    if labels is not None:
        del columns["label"]
    texts = ("premise", "hypothesis")
    pairs = [*_PairReader(file, columns, optional=texts, strict=True)]
    if labels is None:
        return pairs
    if len(labels) != len(pairs):
        raise ValueError(
            f"{file}: expected as many rows as there are labels, {len(labels)}, found {len(pairs)}."
        )
    return [pair | {"label": label} for pair, label in zip(pairs, labels, strict=True)]


def _has_header(file: Path) -> bool:
    """Whether the first row names the columns; always true for jsonl."""
    file_format = format_of(file)
    _, row = next(records(file, file_format=file_format), (0, []))
    return file_format == "jsonl" or (
        isinstance(row, list) and len({name.strip().casefold() for name in row} & _HEADS) > 1
    )


def _official(file: Path) -> ParallelTriplets:
    """The triplets of a file of all languages; pairID identifies a pair, promptID a prompt."""
    columns: dict[str, Column] = {
        **NLI_COLUMNS,
        "language": "language",
        "pair": "pairID",
        "prompt": "promptID",
    }
    by_language: dict[str, dict[str, dict[str, Any]]] = {}
    for pair in _PairReader(file, columns, strict=True):
        of_language = by_language.setdefault(pair["language"], {})
        if of_language.setdefault(pair["pair"], pair) is not pair:
            raise ValueError(f"{file}: pairID {pair['pair']} occurs twice in {pair['language']!r}.")
    first = next(iter(by_language.values()))
    for language, of_language in by_language.items():
        if differing := sorted(set(first) ^ set(of_language)):
            raise ValueError(
                f"{file}: expected every pair in every language; pairID {differing[0]} and "
                f"{len(differing) - 1} more are not in both of {next(iter(by_language))!r} and "
                f"{language!r}."
            )
    return _joined(
        str(file),
        {language: [each[pair] for pair in first] for language, each in by_language.items()},
        prompts=[pair["prompt"] for pair in first.values()],
    )
