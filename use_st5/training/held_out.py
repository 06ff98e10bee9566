"""Rows that do not train: those that validate, those that test, and what is left to train on."""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from use_st5.training.sources import Row
from use_st5.training.survey import Survey, hard_negatives, text_hash
from use_st5.training.tasks import NEIGHBOURS, TaskSpec
from use_st5.training.validation import DevelopmentSet

# Without a file of their own, a share of the rows validates and tests, and no more than so many
# do either.
_SHARE, _SHARE_OF_FEW, _FEW = 0.1, 0.2, 1000
MOST_DEVELOPMENT_ROWS = 1000
# With fewer rows than this the one part says too little of the other.
_FEWEST_TESTED = 20
# Rows that a classifier of labels is fitted to in each measurement.
_FITTED = 2000


def held_out_rows(found: Survey, *, tested: bool = True) -> tuple[list[Row], list[Row]]:
    """The rows that are held out where no file is given: by their first texts.

    Args:
        found: The source.
        tested: Whether a part of them shall test.

    Returns:
        Rows that validate, and rows that test; none of these where the rows are few. No text that
        begins a row of one part begins one of the other, or one that trains.

    Raises:
        ValueError: There are too few.
    """
    share = _SHARE if found.rows >= _FEW else _SHARE_OF_FEW
    share = min(share, (1 + tested) * MOST_DEVELOPMENT_ROWS / found.rows)
    kind, wanted = found.source.kind, max(2, round(share * found.rows))
    if kind is NEIGHBOURS:  # In one piece: what is near has the same sentences.
        rows = list(itertools.islice(found.source, max(0, found.rows - wanted), None))
        groups = [rows[: len(rows) // 2], rows[len(rows) // 2 :]]
    else:
        groups = _groups(found, wanted, lambda row: text_hash(row[kind.texts[0]]))
        # Few texts that begin many rows each cannot be kept apart.
        groups = groups or _groups(found, wanted, lambda row: pair_key(row, kind))
    if sum(map(len, groups)) < 2:
        raise ValueError(
            f"{found.source.name}: expected rows enough to set some aside for validation, found "
            f"{found.rows}. Give more, or a file of their own with --dev."
        )
    parts = _divided(groups)
    test = {pair_key(row, kind) for row in parts[1]}
    parts[0] = [row for row in parts[0] if pair_key(row, kind) not in test]
    if not tested or min(map(len, parts)) < _FEWEST_TESTED:
        return [row for group in groups for row in group], []
    return parts[0], parts[1]


def _groups(found: Survey, wanted: int, group: Callable[[Row], int]) -> list[list[Row]]:
    """Whole groups of rows, about as many as are wanted, chosen by the hashes of the groups."""
    counts = Counter(group(row) for row in found.source.watched(found.rows))
    chosen: dict[int, list[Row]] = {}
    count = 0
    for key in sorted(counts):
        if count < wanted and count + counts[key] <= 2 * wanted:
            chosen[key] = []
            count += counts[key]
    for row in found.source.watched(found.rows):
        if (key := group(row)) in chosen:
            chosen[key].append(row)
    return [*chosen.values()] if count >= 2 else []


def _divided(groups: Iterable[list[Row]]) -> list[list[Row]]:
    """Two parts of about as many rows, of whole groups."""
    parts: list[list[Row]] = [[], []]
    for rows in groups:
        min(parts, key=len).extend(rows)
    return parts


def development_set(
    found: Survey, rows: Sequence[Row], name: str, others: Iterable[Row] = ()
) -> DevelopmentSet:
    """Rows of a source as what measures; of labels with rows that a classifier learns from.

    Args:
        found: The source.
        rows: What measures.
        name: Of the set.
        others: Further rows that do not train.
    """
    kind = found.source.kind
    held = {pair_key(row, kind) for row in (*rows, *others)}
    examples: list[Row] = []
    if kind.label is not None:
        training = (row for row in found.source if pair_key(row, kind) not in held)
        examples = spread(training, found.rows - len(held), _FITTED)
    return DevelopmentSet(name, kind, rows, examples, labels_of=found.source.name)


def without_rows_of(one: DevelopmentSet, others: Sequence[DevelopmentSet]) -> DevelopmentSet:
    """The same without the rows that stand in others, too: what tests must not choose."""
    held = _held(one.kind, others)
    rows = [row for row in one.rows if pair_key(row, one.kind) not in held]
    if len(rows) < 2:
        raise ValueError(
            f"{one.name}: expected rows for validation that are not those of the test, found "
            f"{len(rows)} in {len(one.rows)}. Give other rows with --dev or with --test."
        )
    return dataclasses.replace(one, rows=rows)


def without_held_out(found: Survey, sets: Sequence[DevelopmentSet]) -> Survey:
    """The same with the rows that a set holds left out, and the others looked at."""
    texts_of = {key for each in sets for row in each.rows for key in _text_keys(row, each.kind)}
    kind = found.source.kind
    held = _held(kind, sets)
    left_out = shared = 0
    for row in found.source.watched(found.rows):
        if pair_key(row, kind) in held:
            left_out += 1
        elif not texts_of.isdisjoint(_text_keys(row, kind)):
            shared += 1
    if left_out == found.rows:
        raise ValueError(
            f"{found.source.name}: all its rows stand in the files of --dev or --test, too. Give "
            "other rows."
        )
    return dataclasses.replace(found, left_out=left_out, shared=shared)


def training_rows(found: Survey, sets: Collection[DevelopmentSet]) -> Iterator[Row]:
    """The rows of a source, without those of the sets.

    In place of a hard negative that another row has as a positive of the same text stands the
    row's own positive, which the loss does not take for a negative.
    """
    kind = found.source.kind
    held = _held(kind, sets)
    for row in found.source.watched(found.rows):
        if pair_key(row, kind) not in held:
            false = [key for key, pair in hard_negatives(row, kind) if pair in found.positives]
            yield row | {key: row["positive"] for key in false}


def spread(rows: Iterable[Row], count: int, most: int) -> list[Row]:
    """At most so many of `count` rows, evenly spread over them: a file may be sorted."""
    every = max(1.0, count / most)
    return [row for place, row in enumerate(rows) if int(place / every) != int((place - 1) / every)]


def pair_key(row: Row, kind: TaskSpec) -> int:
    """The same for rows of the same texts in any order, whatever label, score or negatives."""
    if kind is NEIGHBOURS:
        return text_hash(row["text"])
    texts = (row[key] for key in kind.texts if key not in kind.optional)
    return hash(tuple(sorted(map(text_hash, texts))))


def _text_keys(row: Row, kind: TaskSpec) -> set[int]:
    """One number for each text of a row."""
    return {text_hash(row[key]) for key in kind.texts if key in row}


def _held(kind: TaskSpec, sets: Iterable[DevelopmentSet]) -> set[int]:
    return {pair_key(row, kind) for each in sets if each.kind is kind for row in each.rows}
