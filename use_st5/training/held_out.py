"""Validation rows, test rows, and the rows that remain for training."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from use_st5.data.text_hashes import text_hash
from use_st5.training.dataset_stats import DatasetStats, false_negatives
from use_st5.training.sources import Row, Source, rows_of
from use_st5.training.tasks import NEIGHBOURS, TaskSpec
from use_st5.training.validation import ValidationSet

# If no files are given for validation and test, a share of the rows is held out, and at most
# `MOST_VALIDATION_ROWS` rows for each of the two.
_SHARE, _SHARE_OF_FEW, _FEW = 0.1, 0.2, 1000
MOST_VALIDATION_ROWS = 1000
# If one of the two parts has fewer rows than this, it says too little, and no rows test.
_FEWEST_TESTED = 20
# Rows that a classifier of labels is fitted to in each measurement.
_FITTED = 2000


def held_out_rows(found: DatasetStats, *, tested: bool = True) -> tuple[list[Row], list[Row]]:
    """Chooses the rows to hold out if no file is given, by their first texts.

    Returns:
        The validation rows and the test rows. There are no test rows if the rows are few, or if
        `tested` is False. If possible, the first text of a row in one part is not the first text of
        a row in the other part or of a training row.

    Raises:
        ValueError: There are too few rows.
    """
    share = _SHARE if found.rows >= _FEW else _SHARE_OF_FEW
    share = min(share, (1 + tested) * MOST_VALIDATION_ROWS / found.rows)
    kind, count = found.source.kind, max(2, round(share * found.rows))
    if kind.stands_in_for(
        NEIGHBOURS
    ):  # In one piece: rows that are near each other share sentences.
        rows = found.source.table.slice(max(0, found.rows - count)).to_pylist()
        groups = [rows[: len(rows) // 2], rows[len(rows) // 2 :]]
    else:
        groups = _groups(found, count, found.source.hashes[kind.texts[0]])
        # A few first texts with many rows each cannot be divided: then by all texts of a row.
        groups = groups or _groups(found, count, found.source.pair_keys)
    if not 2 <= sum(map(len, groups)) < found.rows:
        raise ValueError(
            f"{found.source.name}: expected enough rows to hold some out for validation, found "
            f"{found.rows}. Add rows, or give a file with --validation."
        )
    parts = _divided(groups)
    test = {pair_key(row, kind) for row in parts[1]}
    parts[0] = [row for row in parts[0] if pair_key(row, kind) not in test]
    if not tested or min(map(len, parts)) < _FEWEST_TESTED:
        return [row for group in groups for row in group], []
    return parts[0], parts[1]


def _groups(found: DatasetStats, wanted: int, groups: np.ndarray) -> list[list[Row]]:
    """Whole groups with about `wanted` rows in all, chosen by each row's hash, int `[rows]`."""
    keys, counts = np.unique(groups, return_counts=True)
    chosen_keys: list[int] = []
    count = 0
    for key, size in zip(keys, counts.tolist(), strict=True):
        if count >= wanted:
            break
        if count + size <= 2 * wanted:
            chosen_keys.append(key)
            count += size
    if count < 2:
        return []
    places = np.flatnonzero(np.isin(groups, chosen_keys))
    rows: dict[int, list[Row]] = {key: [] for key in chosen_keys}
    for place, row in zip(places, found.source.table.take(places).to_pylist(), strict=True):
        rows[groups[place]].append(row)
    return [*rows.values()]


def _divided(groups: Iterable[list[Row]]) -> list[list[Row]]:
    """Divides whole groups into two parts with about the same number of rows."""
    parts: list[list[Row]] = [[], []]
    for rows in groups:
        min(parts, key=len).extend(rows)
    return parts


def validation_set(
    found: DatasetStats, rows: Sequence[Row], name: str, others: Iterable[Row] = ()
) -> ValidationSet:
    """Makes a validation set of rows; if they have labels, with training rows for a classifier.

    `others` are further rows that are not trained on.
    """
    kind = found.source.kind
    examples: list[Row] = []
    if kind.label is not None:
        held_keys = {pair_key(row, kind) for row in (*rows, *others)}
        table = found.source.table.filter(~np.isin(found.source.pair_keys, [*held_keys]))
        examples = spread(table, table.num_rows, _FITTED)
    source = found.source
    return ValidationSet(name, kind, rows, examples, labels_of=source.name, prompts=source.prompts)


def without_rows_of(one: ValidationSet, others: Sequence[ValidationSet]) -> ValidationSet:
    """The set without the rows of other sets, so that test rows do not choose the best step."""
    held_keys = _held(one.kind, others)
    rows = [row for row in one.rows if pair_key(row, one.kind) not in held_keys]
    if len(rows) < 2:
        raise ValueError(
            f"{one.name}: expected validation rows that are not test rows too, found {len(rows)} "
            f"among {len(one.rows)}. Give other rows with --validation or --test."
        )
    return dataclasses.replace(one, rows=rows)


def without_held_out(found: DatasetStats, sets: Sequence[ValidationSet]) -> DatasetStats:
    """The statistics with the number of held-out rows, and of others that share their texts."""
    source = found.source
    texts_of = {key for each in sets for row in each.rows for key in _text_keys(row, each.kind)}
    held_mask = _is_held(source, sets)
    left_out = np.count_nonzero(held_mask)
    text_masks = [np.isin(hashes, _uint64(texts_of)) for hashes in source.hashes.values()]
    shared = np.count_nonzero(np.any(text_masks, axis=0) & ~held_mask)
    if left_out == found.rows:
        raise ValueError(
            f"{found.source.name}: expected training rows, found only rows that are also "
            "validation or test rows. Give other rows."
        )
    return dataclasses.replace(found, left_out=int(left_out), shared=int(shared))


def training_table(found: DatasetStats, sets: Collection[ValidationSet]) -> pa.Table:
    """The rows of a source, without those of the sets.

    If a hard negative is a positive of the same text in another row, the row's own positive
    replaces it: the loss does not use that as a negative.
    """
    source, table = found.source, found.source.table
    for key, mask in false_negatives(source).items():
        positive = table[source.kind.needed[1]]
        column = pc.if_else(pa.array(mask), positive, table[key])
        table = table.set_column(table.column_names.index(key), key, column)
    return table.filter(~_is_held(source, sets))


def training_rows(found: DatasetStats, sets: Collection[ValidationSet]) -> Iterator[Row]:
    """The rows of `training_table` one by one."""
    return rows_of(training_table(found, sets))


def spread(table: pa.Table, count: int, most: int) -> list[Row]:
    """At most `most` of about `count` rows, evenly spread, because a file may be sorted."""
    interval = max(1.0, count / most)
    places = np.arange(table.num_rows)
    mask = np.trunc(places / interval) != np.trunc((places - 1) / interval)
    return table.filter(mask).to_pylist()


def pair_key(row: Row, kind: TaskSpec) -> int:
    """A key of a row's texts in any order; label, score and negatives do not change it."""
    if kind.stands_in_for(NEIGHBOURS):
        return int(np.uint64(text_hash(row["text"])).astype(np.int64))
    texts = (row[key] for key in kind.texts if key not in kind.optional)
    return hash(tuple(sorted(map(text_hash, texts))))


def _text_keys(row: Row, kind: TaskSpec) -> set[int]:
    """The hash of each text of a row."""
    return {text_hash(row[key]) for key in kind.texts if key in row}


def _is_held(source: Source, sets: Iterable[ValidationSet]) -> np.ndarray:
    """Whether each row of a source is in one of the sets, bool `[rows]`."""
    return np.isin(source.pair_keys, [*_held(source.kind, sets)])


def _uint64(keys: Collection[int]) -> np.ndarray:
    return np.fromiter(keys, np.uint64, len(keys))


def _held(kind: TaskSpec, sets: Iterable[ValidationSet]) -> set[int]:
    return {
        pair_key(row, kind) for each in sets if each.kind.name == kind.name for row in each.rows
    }
