"""The rows of training files: statistics, duplicates, held-out rows, and what the losses read."""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import tensorflow as tf

from use_st5.data.arrays import rows_of
from use_st5.data.tables import TEXT
from use_st5.data.text_hashes import text_hash
from use_st5.encode.cross_encoder import CrossEncoder
from use_st5.io.streams import batched, in_threads
from use_st5.losses.task_loss import TaskLoss
from use_st5.trainable_encoder import TrainableEncoder
from use_st5.training.sources import Row, Source
from use_st5.training.tasks import (
    DEFINITIONS,
    INFERENCE,
    NEIGHBOURS,
    TEXTS,
    UNSCORED_PAIRS,
    TaskSpec,
)
from use_st5.training.teachers import VectorFile, scored_by, texts_with_vectors
from use_st5.training.validation import ValidationSet, with_prompts

# Texts whose tokens are counted at once.
_AT_ONCE = 8192
# Any odd number works: different hashes stay different when they are multiplied by it.
_ODD = np.uint64(0x9E3779B97F4A7C15)
_MOST_CLASSES = 1000
_INFERENCE_LABELS = ("entailment", "neutral", "contradiction")
_LINE = 110
# If no files are given for validation and test, a share of the rows is held out, and at most
# `MOST_VALIDATION_ROWS` rows for each of the two.
_SHARE, _SHARE_OF_FEW, _FEW = 0.1, 0.2, 1000
MOST_VALIDATION_ROWS = 1000
# If one of the two parts has fewer rows than this, it says too little, and no rows test.
_FEWEST_TESTED = 20
# Rows that a classifier of labels is fitted to in each measurement.
_FITTED = 2000
# Largest number of rows that are used of a file: with more, an evaluation would take minutes.
_MOST_ROWS = 5 * MOST_VALIDATION_ROWS

# Names of the tasks of `train` that come from no file: the start's similarities, and the teacher.
_RESERVED = ("start", "teacher")

Sets = list[ValidationSet]
# Narrow ranges first: the first range that holds all scores of a file is used.
_USUAL = ((0.0, 1.0), (-1.0, 1.0), (1.0, 5.0), (0.0, 5.0), (0.0, 10.0), (0.0, 100.0))


@dataclasses.dataclass(frozen=True)
class ScoreRange:
    """The lowest and the highest possible score of a file, which its rows need not reach.

    Attributes:
        lowest: The lowest possible score.
        highest: The highest possible score.
        scaled: Whether scores are scaled to 0 … 1. Scores within −1 … 1 are cosines and stay
            unchanged, unless the user gave the range.
        usual: Whether the user gave the range or it is a usual one; if not, the rows have set it.
    """

    lowest: float
    highest: float
    scaled: bool
    usual: bool

    def target(self, score: float) -> float:
        """The target similarity of two texts with this score."""
        return (score - self.lowest) / (self.highest - self.lowest) if self.scaled else score

    def line(self, lowest: float, highest: float) -> str:
        """The log line about a file's scores, whose lowest and highest score are given."""
        text = f"scores: {lowest:g} … {highest:g}"
        if not self.scaled:
            return f"{text}, not scaled"
        line = f"{text}, scaled from {self.lowest:g} … {self.highest:g} to 0 … 1"
        return line if self.usual else f"{line} (not a usual range; --score-range sets another)"


def score_range(
    name: str, lowest: float, highest: float, requested: Sequence[float] | None
) -> ScoreRange:
    """The range of possible scores of a file, whose rows have scores from `lowest` to `highest`.

    `requested` is the range that the user gave; None: the narrowest usual range that holds all
    scores, or else the range of the rows. Scores outside of a given range raise a ValueError.
    """
    if requested is None:
        ranges = [each for each in _USUAL if each[0] <= lowest and highest <= each[1]]
        bottom, top = ranges[0] if ranges else (lowest, highest)
        return ScoreRange(bottom, top, scaled=bottom < -1 or top > 1, usual=bool(ranges))
    bottom, top = requested
    if lowest < bottom or highest > top:
        raise ValueError(
            f"{name}: expected scores from {bottom:g} to {top:g}, as --score-range says, found "
            f"scores from {lowest:g} to {highest:g}. Give a wider range, or leave it out."
        )
    return ScoreRange(bottom, top, scaled=True, usual=True)


@dataclasses.dataclass(frozen=True)
class DatasetStats:
    """The statistics of a source.

    Attributes:
        source: The file or data set.
        rows: Number of examples.
        lengths: Tokens of each text with its prompt, int `[texts]`.
        classes: Label → number of rows.
        lowest: The lowest score.
        highest: The highest score.
        repeated: Number of rows with the same words as an earlier row.
        conflicting: Number of repeated rows with another label or score than the earlier row.
        first: The first rows, to be shown.
        scores: The range of the scores; None if the rows have no scores.
        false_negatives: Number of hard negatives that are a positive of the same text in another
            row.
        left_out: Number of rows that are validation or test rows.
        shared: Number of other rows that share a text with these.
    """

    source: Source
    rows: int
    lengths: np.ndarray
    classes: Counter[str]
    lowest: float
    highest: float
    repeated: int
    conflicting: int
    first: Sequence[Row]
    scores: ScoreRange | None = None
    false_negatives: int = 0
    left_out: int = 0
    shared: int = 0

    @property
    def kept(self) -> int:
        """The number of rows that are trained on."""
        return self.rows - self.left_out

    @property
    def label_numbers(self) -> dict[str, int]:
        """Label → its number: in the usual order for inference, else in alphabetical order."""
        names = {name.casefold(): name for name in self.classes}
        labels = sorted(self.classes)
        if self.source.kind.stands_in_for(INFERENCE) and {*names} == {*_INFERENCE_LABELS}:
            labels = [names[name] for name in _INFERENCE_LABELS]
        return {name: number for number, name in enumerate(labels)}

    def lines(self, limit: int, *, longer: bool = False) -> Iterator[str]:
        """The log lines: the statistics, and the number of texts that are cut.

        `limit` is the number of tokens that training reads; `longer`: the encoder could read more.
        """
        kind, report = self.source.kind, self.source.report
        columns_text = ", ".join(
            key if key == column else f"{column} as {key}"
            for key, column in self.source.columns.items()
        )
        yield f"{self.source.name}: {columns_text} → {kind.name} ({kind.description})"
        if other_task := {TEXTS.name: NEIGHBOURS, NEIGHBOURS.name: TEXTS}.get(kind.name):
            yield (
                f"  as {other_task.name} with --task {self.source.name}={other_task.name} "
                f"({other_task.description})"
            )
        omissions = f", {report.malformed_rows} bad rows left out" if report.malformed_rows else ""
        skip_count = report.skipped.total() - report.skipped["blank"]
        omissions += f", {skip_count} skipped ({', '.join(report.skipped)})" if skip_count else ""
        repeats = f", {self.repeated:,} of them repeated" if self.repeated else ""
        if self.conflicting:
            repeats += f" ({self.conflicting:,} with another {kind.target} than before)"
        yield f"  {self.rows:,} rows{repeats}{omissions}"
        yield from (f"    {offence}" for offence in report.offences)
        yield from (f"    {note}: {count:,}" for note, count in report.notes.items())
        if joined := report.joined_message():
            yield f"    {joined}"
        if prompts := self.source.prompts:
            text = ", ".join(f"{key} {prompt!r}" for key, prompt in prompts.items())
            bare_keys = [key for key in self.source.hashes if key not in prompts]
            yield f"  prompts: {text}" + "; none before " * bool(bare_keys) + ", ".join(bare_keys)
        if self.false_negatives:
            yield (
                f"  {self.false_negatives:,} hard negatives are not used, because they are "
                "positives of the same text in other rows"
            )
        yield self._lengths(limit, longer=longer)
        if self.classes:
            counts = ", ".join(f"{name} {count:,}" for name, count in self.classes.most_common(8))
            suffix = f", … ({len(self.classes)} labels)" if len(self.classes) > 8 else ""
            yield f"  labels: {counts}{suffix}"
        if self.scores is not None:
            yield "  " + self.scores.line(self.lowest, self.highest)
        for row in self.first:
            yield "  e.g. " + " | ".join(_short(row[key]) for key in row)

    def _lengths(self, limit: int, *, longer: bool) -> str:
        median, most = np.median(self.lengths), self.lengths.max()
        text = f"  {len(self.lengths):,} texts of {median:.0f} tokens (median), {most:,} at most; "
        if not (count := int((self.lengths > limit).sum())):
            return f"{text}none is cut"
        return (
            f"{text}training cuts {count:,} of them ({count / len(self.lengths):.1%}) at {limit:,} "
            "tokens" + (" (--max-length changes this)" if longer else ", the limit of the model")
        )


def dataset_stats(
    source: Source, tokenizer: Any, *, scores: Sequence[float] | None = None
) -> DatasetStats:
    """Reads a source, and computes its statistics.

    `scores` is the range that scores can have; None: the rows decide. A ValueError says that no row
    can be used, or that nothing can be learned from the labels or scores.
    """
    kind, table = source.kind, source.table
    repeated, conflicting, classes, (lowest, highest) = checked_rows(source)
    texts = [table[key] for key in source.hashes]
    for place, key in enumerate(source.hashes):
        if prompt := source.prompts.get(key):
            prefix, separator = (pa.scalar(each, TEXT) for each in (prompt, ""))
            texts[place] = pc.binary_join_element_wise(prefix, texts[place], separator)
    return DatasetStats(
        source=source,
        rows=table.num_rows,
        lengths=_token_counts(texts, tokenizer),
        classes=classes,
        lowest=lowest,
        highest=highest,
        repeated=repeated,
        conflicting=conflicting,
        first=table.slice(0, 2).to_pylist(),
        scores=score_range(source.name, lowest, highest, scores) if kind.score else None,
        false_negatives=int(sum(map(np.count_nonzero, false_negatives(source).values()))),
    )


def checked_rows(source: Source) -> tuple[int, int, Counter[str], tuple[float, float]]:
    """Checks and counts a source's rows, but does not count tokens, which takes long.

    Returns:
        The number of repeated rows, the number of these with another label or score, the number of
        rows of each label, and the lowest and the highest score.
    """
    kind, table = source.kind, source.table
    if not table.num_rows:
        raise ValueError(f"{source.name}: expected rows, found none that can be used.")
    repeated, conflicting = _repeated(source)
    classes: Counter[str] = Counter()
    if kind.label is not None:
        counts = pc.value_counts(table[kind.label]).flatten()
        classes.update(dict(zip(*(each.to_pylist() for each in counts), strict=True)))
        if not 2 <= len(classes) <= _MOST_CLASSES:
            raise ValueError(
                f"{source.name}: expected 2 to {_MOST_CLASSES:,} different labels, found "
                f"{len(classes):,}" + (f": {next(iter(classes))!r}." if len(classes) == 1 else ".")
            )
    lowest, highest = 0.0, 1.0
    if kind.score is not None:
        lowest, highest = pc.min_max(table[kind.score]).as_py().values()
    if lowest == highest:
        raise ValueError(f"{source.name}: expected different scores, all of them are {lowest:g}.")
    return repeated, conflicting, classes, (lowest, highest)


def _token_counts(columns: Sequence[pa.ChunkedArray], tokenizer: Any) -> np.ndarray:
    """The tokens of each text of some columns, int `[texts]`."""
    count = tokenizer.token_counts
    if len(columns[0]) > _AT_ONCE:  # A graph takes half the time, but a second to be traced.
        count = tf.function(count, input_signature=[tf.TensorSpec([None], tf.string)])
    parts = (
        texts.slice(start, _AT_ONCE)
        for texts in columns
        for start in range(0, len(texts), _AT_ONCE)
    )
    return np.concatenate([*in_threads(lambda part: np.asarray(count(part.to_pylist())), parts)])


def _repeated(source: Source) -> tuple[int, int]:
    """The number of repeated rows, and the number of these with another label or score.

    If more than half of all rows have another label or score than before, it is a ValueError.
    """
    _, first_rows, group = np.unique(
        combined([*source.hashes.values()]), return_index=True, return_inverse=True
    )
    rows, target = len(group), source.kind.target
    if target is None:
        return rows - len(first_rows), 0
    values = source.table[target].combine_chunks()
    if source.kind.label is not None:
        values = values.dictionary_encode().indices
    target_array = values.to_numpy(zero_copy_only=False)
    mismatches = target_array[first_rows[group]] != target_array
    conflicts = int(np.count_nonzero(mismatches))
    if 2 * conflicts > rows:
        place = int(mismatches.argmax())
        earlier, row = source.table.take([int(first_rows[group[place]]), place]).to_pylist()
        words = " | ".join(_short(row[key]) for key in source.hashes)
        raise ValueError(
            f"{source.name}: expected one {target} for the same words, found {conflicts:,} of "
            f"{rows:,} rows with another one than before ({words}: {earlier[target]}, then "
            f"{row[target]}). Is {source.columns[target]!r} the right column?"
        )
    return rows - len(first_rows), conflicts


def false_negatives(source: Source) -> dict[str, np.ndarray]:
    """Key of hard negatives → whether each is a positive of its text in another row, bool."""
    hashes = source.hashes
    negatives = [key for key in source.kind.optional if key in hashes]
    if not negatives:
        return {}
    anchor, positive = (hashes[key] for key in source.kind.needed[:2])
    positives = combined([anchor, positive])
    return {key: np.isin(combined([anchor, hashes[key]]), positives) for key in negatives}


def combined(hashes: Sequence[np.ndarray]) -> np.ndarray:
    """Combines several hashes of each row, in their order, into one; all are uint64 `[rows]`."""
    result = hashes[0]
    for each in hashes[1:]:
        result = result * _ODD + (each ^ (result >> np.uint64(32)))
    return result


def _short(value: Any) -> str:
    text = f"{value:g}" if isinstance(value, float) else " ".join(str(value).split())
    return text if len(text) <= _LINE // 2 else text[: _LINE // 2 - 1] + "…"


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
    parts: list[list[Row]] = [[], []]
    for rows in groups:  # Whole groups, in two parts with about the same number of rows.
        min(parts, key=len).extend(rows)
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
    held_keys = {*_held_keys(one.kind, others)}
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
    texts = [row[k] for each in sets for row in each.rows for k in each.kind.texts if k in row]
    held_hashes = np.array([*map(text_hash, texts)], np.uint64)
    held_mask = np.isin(source.pair_keys, _held_keys(source.kind, sets))
    left_out = np.count_nonzero(held_mask)
    text_masks = [np.isin(hashes, held_hashes) for hashes in source.hashes.values()]
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
    return table.filter(~np.isin(source.pair_keys, _held_keys(source.kind, sets)))


def training_rows(found: DatasetStats, sets: Collection[ValidationSet]) -> Iterator[Row]:
    """The rows of `training_table` one by one."""
    return rows_of(training_table(found, sets))


def loss_keys(found: DatasetStats, loss: TaskLoss, *, scored: bool) -> dict[str, str]:
    """Feature of the loss of a file → key of a row; a key without a column is a ValueError.

    `scored`: a cross-encoder scores the rows.
    """
    source = found.source
    keys = {each.name: source.kind.key_of(each.name, source.columns) for each in loss.features}
    row_keys = {*source.table.column_names} | ({"score"} if scored else set())
    if missing_keys := [key for key in keys.values() if key not in row_keys]:
        raise ValueError(
            f"{source.name}: expected a column {missing_keys[0]}, which the loss reads, found "
            f"{', '.join(source.columns)}. Add the column, or change the loss or its arguments."
        )
    return keys


def loss_rows(
    found: DatasetStats,
    sets: Collection[ValidationSet],
    encoder: TrainableEncoder,
    scorer: CrossEncoder | None,
    loss: TaskLoss,
) -> Iterator[Row]:
    """The training rows of a file as a loss reads them: feature → text with its prompt, or number.

    `sets` are rows that are not trained on. `scorer` scores pairs that have no score. If the loss
    predicts the defined words, rows whose word is not one token are left out.
    """
    kind, rows = found.source.kind, training_rows(found, sets)
    keys = loss_keys(found, loss, scored=scorer is not None)
    numbers: dict[str, Callable[[Any], Any]] = {}
    for feature in loss.features:
        if not feature.is_text:
            key = keys[feature.name]
            # A cross-encoder's scores are in 0 … 1.
            numbers[key] = found.scores.target if found.scores else float
            if key == kind.label:
                numbers[key] = found.label_numbers.__getitem__
            elif kind.stands_in_for(DEFINITIONS):
                numbers[key] = int
    if kind.stands_in_for(DEFINITIONS) and "word" in numbers:
        rows = _single_tokens(rows, encoder.tokenizer.single_ids)  # type: ignore[attr-defined]
    elif scorer is not None and kind.stands_in_for(UNSCORED_PAIRS):
        rows = scored_by(scorer, rows)
    for row in rows:
        prompted = with_prompts(row, found.source.prompts)
        yield {
            feature: numbers[key](row[key]) if key in numbers else prompted[key]
            for feature, key in keys.items()
        }


def _single_tokens(
    rows: Iterator[Row], single_ids: Callable[[Sequence[str]], Any]
) -> Iterator[Row]:
    """The rows whose word is one token, with the id of the token instead of the word."""
    for chunk in batched(rows, _AT_ONCE):
        words = single_ids([row["word"] for row in chunk])
        yield from (row | {"word": int(w)} for row, w in zip(chunk, words, strict=True) if w)


def teacher_texts(
    teacher: TrainableEncoder | VectorFile,
    encoder: TrainableEncoder,
    stats: Sequence[DatasetStats],
    sets: Collection[ValidationSet],
) -> list[tuple[str, str]]:
    """The texts of the training rows as a teacher reads them, each with its text for the encoder.

    Another teacher than the encoder gets no prompts of the files: it has its own, if any. If the
    teacher is a file of vectors, only texts with a vector in it are used; if there are none, it is
    a ValueError.
    """
    texts = (
        (prompted[key] if teacher is encoder else row[key], prompted[key])
        for file_stats in stats
        for row in training_rows(file_stats, sets)
        for prompted in [with_prompts(row, file_stats.source.prompts)]
        for key in file_stats.source.kind.texts
        if key in row
    )
    pairs = [*dict.fromkeys(texts)]
    if isinstance(teacher, VectorFile):
        covered_texts = {*texts_with_vectors([text for text, _ in pairs], teacher)}
        pairs = [pair for pair in pairs if pair[0] in covered_texts]
    return pairs


def teacher_rows(
    teacher: TrainableEncoder | VectorFile, texts: Sequence[tuple[str, str]], loss: TaskLoss
) -> Iterator[Row]:
    """The rows from which a teacher's vectors are learned, as `TeacherLoss` reads them."""
    for chunk in batched(texts, _AT_ONCE):
        vectors = teacher.encode([text for text, _ in chunk])
        for (_, text), vector in zip(chunk, vectors, strict=True):
            yield {"sentence": text, "teacher": vector}


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


def _held_keys(kind: TaskSpec, sets: Iterable[ValidationSet]) -> list[int]:
    """The keys of the rows of all sets of a task."""
    return [
        pair_key(row, kind) for each in sets if each.kind.name == kind.name for row in each.rows
    ]
