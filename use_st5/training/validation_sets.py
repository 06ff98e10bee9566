"""The validation and test sets: given files, or held-out rows."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Sequence
from pathlib import Path

from use_st5.training.dataset_stats import DatasetStats, checked_rows
from use_st5.training.held_out import (
    MOST_VALIDATION_ROWS,
    held_out_rows,
    spread,
    validation_set,
    without_rows_of,
)
from use_st5.training.sources import Source
from use_st5.training.validation import ValidationSet

# Largest number of rows that are used of a file: with more, an evaluation would take minutes.
_MOST_ROWS = 5 * MOST_VALIDATION_ROWS

# Names of the tasks of `train` that come from no file: the start's similarities, and the teacher.
_RESERVED = ("start", "teacher")

Sets = list[ValidationSet]


def validation_and_test_sets(
    stats: Sequence[DatasetStats], validation: Sequence[Source], test: Sequence[Source]
) -> tuple[Sets, Sets]:
    """The validation sets, by which the best step is chosen, and the test sets, used once.

    Args:
        stats: The training files.
        validation: The validation files; none: rows of the training files are held out.
        test: The test files. Without validation and test files, half of the held-out rows test, if
            there are enough of them.

    Raises:
        ValueError: There are no rows to measure on, or labels that no training file has.
    """
    if validation or test:
        tests = _of_files(test, stats, others=[])
        if not validation:
            sets, _ = _held_out(stats, tested=False)
            return [without_rows_of(each, tests) for each in sets], tests
        sets = _of_files(validation, stats, others=tests)
        return [without_rows_of(each, tests) for each in sets], tests
    return _held_out(stats, tested=True)


def short_names(sources: Sequence[Source]) -> list[str]:
    """Short and different names, which are valid names of tasks."""
    names: list[str] = []
    for source in sources:
        letters = Path(source.name).name.split(".")[0]
        letters = "".join(each if f"a{each}".isidentifier() else " " for each in letters)
        stem = re.sub(r"\W+", "_", letters).strip("_") or "data"
        stem = stem if stem.isidentifier() else f"data_{stem}"
        variants = (f"{stem}_{number}" for number in itertools.count(len(names) + 1))
        used = {*names, *_RESERVED}
        names.append(next(name for name in itertools.chain([stem], variants) if name not in used))
    return names


def _held_out(stats: Sequence[DatasetStats], *, tested: bool) -> tuple[Sets, Sets]:
    """Sets of rows of the training files; either all files have test rows, or none has."""
    names = short_names([file_stats.source for file_stats in stats])
    named_stats = [
        (file_stats, name)
        for file_stats, name in zip(stats, names, strict=True)
        if file_stats.source.kind.metric is not None
    ]
    if not named_stats:
        raise ValueError(
            "validation: expected a file with scores or labels, because pairs without a score "
            "cannot evaluate a model. Give --validation FILE, for example with the columns "
            "sentence1, sentence2 and score."
        )
    parts = [held_out_rows(file_stats, tested=tested) for file_stats, _ in named_stats]
    if not all(test for _, test in parts):
        parts = [([*validation, *test], []) for validation, test in parts]
    sets, tests = [], []
    for (file_stats, name), (validation, test) in zip(named_stats, parts, strict=True):
        sets.append(validation_set(file_stats, validation, name, others=test))
        if test:
            tests.append(validation_set(file_stats, test, name, others=validation))
    return sets, tests


def _of_files(sources: Sequence[Source], stats: Sequence[DatasetStats], others: Sets) -> Sets:
    sets = []
    for source, name in zip(sources, short_names(sources), strict=True):
        _, _, classes, _ = checked_rows(source)
        rows = spread(source.table, source.table.num_rows, _MOST_ROWS)
        if source.kind.label is None:
            sets.append(ValidationSet(name, source.kind, rows, prompts=source.prompts))
            continue
        same_kind = [each for each in others if each.kind.name == source.kind.name]
        other_rows = [row for each in same_kind for row in each.rows]
        sets.append(
            validation_set(_training_file(stats, source, classes), rows, name, others=other_rows)
        )
    return sets


def _training_file(
    stats: Sequence[DatasetStats], source: Source, classes: Collection[str]
) -> DatasetStats:
    """The training file of the same task that has the labels of a validation file."""
    candidates = [found for found in stats if found.source.kind.name == source.kind.name]
    if not candidates:
        raise ValueError(
            f"{source.name}: expected a training file of the task {source.kind.name}, to fit a "
            "classifier, found none. Give one, or evaluate on another file."
        )
    unknown_labels = [set(classes) - set(found.classes) for found in candidates]
    training_stats, missing_labels = min(
        zip(candidates, unknown_labels, strict=True), key=lambda each: len(each[1])
    )
    if missing_labels:
        raise ValueError(
            f"{source.name}: expected the labels of {training_stats.source.name}, "
            f"{', '.join(sorted(training_stats.classes)[:8])}; received others: "
            f"{', '.join(sorted(missing_labels)[:8])}."
        )
    return training_stats
