"""Semantic textual similarity sets in the formats they were published in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from use_st5.evaluation._text_files import (
    check_new_id,
    numbered_lines,
    parse_score,
    read_columns,
    read_side_by_side,
    split_fields,
)
from use_st5.evaluation.sts._checked_pair import checked_pair
from use_st5.evaluation.sts.sts_pair import STSPair
from use_st5.evaluation.sts.sts_set import STSSet

_SEMEVAL_INPUT = re.compile(r"STS\d*\.input\.(.+)\.txt")

_STSB_FIELDS = (7, 9)


def read_semeval_sts(folder: str | Path, *, name: str | None = None) -> STSSet:
    """Reads a year of SemEval STS: `STS.input.X.txt` beside `STS.gs.X.txt` for each subset X.

    Lines without a gold score are skipped: from 2015 on the organisers scored a part of the input.
    Gold files without input (STS13's SMT, withdrawn for its licence) are left out.

    Args:
        folder: The folder of one year.
        name: The set's name; by default the folder's name.

    Raises:
        FileNotFoundError: The folder or a gold file is missing.
        ValueError: Input and gold differ in their number of lines; a line is not in the format; a
            subset has no pairs.
    """
    folder = Path(folder)
    inputs = {
        match[1]: path
        for path in sorted(folder.glob("STS*.input.*.txt"))
        if (match := _SEMEVAL_INPUT.fullmatch(path.name))
    }
    if not inputs:
        raise FileNotFoundError(f"{folder}: expected files STS.input.*.txt, found none.")
    subsets = {}
    for subset, path in inputs.items():
        gold = path.with_name(path.name.replace(".input.", ".gs.", 1))
        if not gold.exists():
            raise FileNotFoundError(f"{gold}: expected the gold scores of {path.name}.")
        subsets[subset] = list(_semeval_pairs(path, gold))
        if not subsets[subset]:
            raise ValueError(f"{path}: expected pairs that {gold.name} has scores of, found none.")
    return STSSet(name or folder.name, subsets)


def read_stsb(path: str | Path, *, name: str | None = None) -> STSSet:
    """Reads a file of the STS Benchmark: tab-separated, no quoting, no header.

    Columns: genre, file, year, id, score, first sentence, second sentence; in some lines a source
    for each sentence, which is ignored.
    The subsets are the genres (main-news, main-captions, main-forums).

    Raises:
        FileNotFoundError: There is no file at `path`.
        ValueError: A line is not in the format.
    """
    path = Path(path)
    subsets: dict[str, list[STSPair]] = {}
    for number, line in numbered_lines(path):
        fields = split_fields(path, number, line, at_least=7)
        if len(fields) not in _STSB_FIELDS:
            raise ValueError(
                f"{path}:{number}: expected 7 tab-separated fields, or 9 with sources, "
                f"received {len(fields)}: {line[:80]!r}"
            )
        pair = checked_pair(path, number, fields[5:7], parse_score(path, number, fields[4]))
        subsets.setdefault(fields[0], []).append(pair)
    return _named(path, name, subsets)


def read_sick(path: str | Path, *, name: str | None = None) -> STSSet:
    """Reads the relatedness of a SICK file (Marelli et al. 2014): tab-separated with a header.

    Columns used: pair_ID, sentence_A, sentence_B, relatedness_score.

    Raises:
        FileNotFoundError: There is no file at `path`.
        ValueError: A column is missing; a line is not in the format; an id stands twice.
    """
    path = Path(path)
    columns = ("pair_ID", "sentence_A", "sentence_B", "relatedness_score")
    pairs: dict[str, STSPair] = {}
    for number, (one, *sentences, score) in read_columns(path, columns):
        check_new_id(path, number, one, pairs)
        pairs[one] = checked_pair(path, number, sentences, parse_score(path, number, score))
    return _named(path, name, {"all": [*pairs.values()]} if pairs else {})


def _named(path: Path, name: str | None, subsets: dict[str, list[STSPair]]) -> STSSet:
    if not subsets:
        raise ValueError(f"{path}: expected pairs of sentences, found none.")
    return STSSet(name or path.stem, subsets)


def _semeval_pairs(path: Path, gold: Path) -> Iterator[STSPair]:
    for number, line, score in read_side_by_side(path, gold):
        if score.strip():
            sentences = split_fields(path, number, line, at_least=2)[:2]
            yield checked_pair(path, number, sentences, parse_score(gold, number, score))
