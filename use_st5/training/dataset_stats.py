"""Statistics of the files before the first step: counts, lengths, duplicates, cut texts."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import tensorflow as tf

from use_st5.io.streams import in_threads
from use_st5.training.score_range import ScoreRange, score_range
from use_st5.training.sources import Row, Source
from use_st5.training.tasks import INFERENCE, NEIGHBOURS, TEXTS

# Texts whose tokens are counted at once.
_AT_ONCE = 8192
# Any odd number works: different hashes stay different when they are multiplied by it.
_ODD = np.uint64(0x9E3779B97F4A7C15)
_MOST_CLASSES = 1000
_INFERENCE_LABELS = ("entailment", "neutral", "contradiction")
_LINE = 110


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
        if self.source.prompts:
            yield self._prompts()
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

    def _prompts(self) -> str:
        prompts, keys = self.source.prompts, self.source.kind.texts
        bare_keys = [key for key in keys if key in self.source.columns and key not in prompts]
        text = ", ".join(f"{key} {prompt!r}" for key, prompt in prompts.items())
        return f"  prompts: {text}" + (f"; none before {', '.join(bare_keys)}" if bare_keys else "")

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
    texts = [_with_prompt(table[key], source.prompts.get(key, "")) for key in source.hashes]
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
        _check_labels(source, classes)
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


def _with_prompt(texts: pa.ChunkedArray, prompt: str) -> pa.ChunkedArray:
    """Texts with a prompt before each."""
    prefix, separator = (pa.scalar(each, texts.type) for each in (prompt, ""))
    return pc.binary_join_element_wise(prefix, texts, separator) if prompt else texts


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


def _check_labels(source: Source, classes: Counter[str]) -> None:
    if not 2 <= len(classes) <= _MOST_CLASSES:
        raise ValueError(
            f"{source.name}: expected 2 to {_MOST_CLASSES:,} different labels, found "
            f"{len(classes):,}" + (f": {next(iter(classes))!r}." if len(classes) == 1 else ".")
        )


def _short(value: Any) -> str:
    text = f"{value:g}" if isinstance(value, float) else " ".join(str(value).split())
    return text if len(text) <= _LINE // 2 else text[: _LINE // 2 - 1] + "…"
