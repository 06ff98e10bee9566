"""What is in the files, said before the first step: counts, lengths, duplicates, what is cut."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from use_st5._streams import batched
from use_st5.data.held_out import normalized
from use_st5.own_data.columns import INFERENCE, NEIGHBOURS, TEXTS, TaskKind
from use_st5.own_data.development import DevelopmentSet
from use_st5.own_data.sources import Row, Source

_AT_ONCE = 2048
_MOST_CLASSES = 1000
_INFERENCE_LABELS = ("entailment", "neutral", "contradiction")
# Without a file of their own, a share of the rows develops, and no more than so many.
_SHARE, _SHARE_OF_FEW, _FEW = 0.1, 0.2, 1000
MOST_DEVELOPMENT_ROWS = 1000
# Rows that a classifier of labels is fitted to in each measurement.
_FITTED = 2000
_LINE = 110


@dataclasses.dataclass(frozen=True)
class Survey:
    """What one pass over a source found.

    Attributes:
        source: What was read.
        rows: Number of examples.
        lengths: Tokens of each text, int `[texts]`.
        classes: Label → number of rows.
        lowest: The lowest score.
        highest: The highest one.
        repeated: Rows that stand there before, in the same words.
        otherwise: Those of them that have another label or score than before.
        first: The first rows, to be shown.
        left_out: Rows that belong to the development set.
        shared: Further rows that share a text with it.
    """

    source: Source
    rows: int
    lengths: np.ndarray
    classes: Counter[str]
    lowest: float
    highest: float
    repeated: int
    otherwise: int
    first: Sequence[Row]
    left_out: int = 0
    shared: int = 0

    @property
    def kept(self) -> int:
        """Rows that are trained on."""
        return self.rows - self.left_out

    @property
    def label_numbers(self) -> dict[str, int]:
        """Label → its number: as usual for inference, else by the alphabet."""
        names = {name.casefold(): name for name in self.classes}
        ordered = sorted(self.classes)
        if self.source.kind is INFERENCE and {*names} == {*_INFERENCE_LABELS}:
            ordered = [names[name] for name in _INFERENCE_LABELS]
        return {name: number for number, name in enumerate(ordered)}

    def unit_score(self, score: float) -> float:
        """A score of the file in 0 … 1: those of another range are moved and scaled into it."""
        if self.lowest >= 0 and self.highest <= 1:
            return score
        return (score - self.lowest) / (self.highest - self.lowest)

    def lines(self, limit: int) -> Iterator[str]:
        """What is to be shown: what was found, and what the encoder will not read.

        Args:
            limit: Tokens of a text that are read in training.
        """
        kind, report = self.source.kind, self.source.report
        found = ", ".join(
            key if key == column else f"{column} as {key}"
            for key, column in self.source.columns.items()
        )
        yield f"{self.source.name}: {found} → {kind.name} ({kind.what})"
        if other := {TEXTS.name: NEIGHBOURS, NEIGHBOURS.name: TEXTS}.get(kind.name):
            yield f"  as {other.name} with --task {self.source.name}={other.name} ({other.what})"
        bad = f", {report.malformed_rows} bad ones left out" if report.malformed_rows else ""
        skipped = report.skipped.total() - report.skipped["blank"]
        bad += f", {skipped} skipped ({', '.join(report.skipped)})" if skipped else ""
        repeated = f", {self.repeated:,} of them repeated" if self.repeated else ""
        if self.otherwise:
            repeated += f" ({self.otherwise:,} with another {kind.gold} than before)"
        yield f"  {self.rows:,} rows{repeated}{bad}"
        yield from (f"    {offence}" for offence in report.offences)
        middle, most = np.median(self.lengths), self.lengths.max()
        cut = float((self.lengths > limit).mean())
        yield (
            f"  {len(self.lengths):,} texts of {middle:.0f} tokens (median), {most:,} at most; "
            f"{limit:,} are read: {cut:.1%} of the texts are cut"
        )
        if self.classes:
            shown = ", ".join(f"{name} {count:,}" for name, count in self.classes.most_common(8))
            more = f", … ({len(self.classes)} labels)" if len(self.classes) > 8 else ""
            yield f"  labels: {shown}{more}"
        if kind.score is not None:
            scaled = "" if self.unit_score(self.highest) == self.highest else ", taken as 0 … 1"
            yield f"  scores: {self.lowest:g} … {self.highest:g}{scaled}"
        for row in self.first:
            yield "  e.g. " + " | ".join(_short(row[key]) for key in row)


def survey(source: Source, vectorizer: Any) -> Survey:
    """Reads a source once.

    Args:
        source: What to read.
        vectorizer: Counts the tokens.

    Raises:
        ValueError: There is no usable row, or its labels or scores say nothing.
    """
    kind = source.kind
    classes: Counter[str] = Counter()
    lengths: list[np.ndarray] = []
    golds = _Golds()
    scores: list[float] = []
    first: list[Row] = []
    rows = 0
    for chunk in batched(source.watched(), _AT_ONCE):
        first = first or chunk[:2]
        rows += len(chunk)
        golds.add(chunk, kind)
        texts = [row[key] for row in chunk for key in kind.texts if key in row]
        lengths.append(np.asarray(vectorizer.token_counts(texts)))
        if kind.label is not None:
            classes.update(row[kind.label] for row in chunk)
        if kind.score is not None:
            found = [row[kind.score] for row in chunk]
            scores += [min(found), max(found)]
    if not rows:
        raise ValueError(f"{source.name}: expected rows, found none that can be used.")
    golds.check(source, rows)
    _check_labels(source, classes)
    if scores and min(scores) == max(scores):
        raise ValueError(
            f"{source.name}: expected different scores, all of them are {scores[0]:g}."
        )
    return Survey(
        source=source,
        rows=rows,
        lengths=np.concatenate(lengths),
        classes=classes,
        lowest=min(scores, default=0.0),
        highest=max(scores, default=1.0),
        repeated=rows - len(golds.first),
        otherwise=golds.otherwise,
        first=first,
    )


class _Golds:
    """The label or score that each row's words had first, and the rows that say otherwise."""

    def __init__(self) -> None:
        self.first: dict[int, Any] = {}
        self.otherwise = 0
        self._example = ""

    def add(self, rows: Iterable[Row], kind: TaskKind) -> None:
        for row in rows:
            gold = row[kind.gold] if kind.gold else None
            before = self.first.setdefault(row_key(row, kind), gold)
            if before != gold:
                self.otherwise += 1
                words = " | ".join(_short(row[key]) for key in kind.texts if key in row)
                self._example = self._example or f"{words}: {before}, then {gold}"

    def check(self, source: Source, rows: int) -> None:
        """Refuses a file that says the contrary of what it says."""
        gold = source.kind.gold
        if gold is not None and 2 * self.otherwise > rows:
            raise ValueError(
                f"{source.name}: expected one {gold} for the same words, found "
                f"{self.otherwise:,} of {rows:,} rows with another one than before ("
                f"{self._example}). Is {source.columns[gold]!r} the right column?"
            )


def without_development(found: Survey, sets: Sequence[DevelopmentSet]) -> Survey:
    """The same with the rows that a development set holds left out, and the others looked at."""
    rows_of = {(row_key(row, each.kind), each.kind.name) for each in sets for row in each.rows}
    texts_of = {key for each in sets for row in each.rows for key in text_keys(row, each.kind)}
    kind = found.source.kind
    left_out = shared = 0
    for row in found.source.watched(found.rows):
        if (row_key(row, kind), kind.name) in rows_of:
            left_out += 1
        elif not texts_of.isdisjoint(text_keys(row, kind)):
            shared += 1
    if left_out == found.rows:
        raise ValueError(
            f"{found.source.name}: all its rows stand in the development set, too. Give other rows."
        )
    return dataclasses.replace(found, left_out=left_out, shared=shared)


def training_rows(found: Survey, sets: Collection[DevelopmentSet]) -> Iterator[Row]:
    """The rows of a source, without those of the development sets."""
    kind = found.source.kind
    held = {row_key(row, each.kind) for each in sets for row in each.rows if each.kind is kind}
    rows = found.source.watched(found.rows)
    return (row for row in rows if row_key(row, kind) not in held)


def held_out_rows(found: Survey) -> list[Row]:
    """The rows that develop where no file does: by their first texts, none of which then trains.

    Raises:
        ValueError: There are too few.
    """
    share = _SHARE if found.rows >= _FEW else _SHARE_OF_FEW
    share = min(share, MOST_DEVELOPMENT_ROWS / found.rows)
    if found.source.kind is NEIGHBOURS:  # In one piece: what is near has the same sentences.
        start = found.rows - max(2, round(share * found.rows))
        rows = list(itertools.islice(found.source, max(0, start), None))
    else:
        kind, wanted = found.source.kind, max(2, round(share * found.rows))
        rows = _held_out(found, wanted, lambda row: _key(row[kind.texts[0]]))
        # Few texts that begin many rows each cannot be kept apart.
        rows = rows or _held_out(found, wanted, lambda row: row_key(row, kind))
    if len(rows) < 2:
        raise ValueError(
            f"{found.source.name}: expected rows enough to hold some out for measuring, found "
            f"{found.rows}. Give more, or a file of their own with --dev."
        )
    return rows


def _held_out(found: Survey, wanted: int, group: Callable[[Row], int]) -> list[Row]:
    """Whole groups of rows, about as many as are wanted, chosen by the hashes of the groups."""
    counts = Counter(group(row) for row in found.source.watched(found.rows))
    chosen: set[int] = set()
    count = 0
    for key in sorted(counts):
        if count < wanted and count + counts[key] <= 2 * wanted:
            chosen.add(key)
            count += counts[key]
    rows = found.source.watched(found.rows)
    return [row for row in rows if group(row) in chosen] if count >= 2 else []


def development_set(found: Survey, rows: Sequence[Row], name: str) -> DevelopmentSet:
    """Rows of a source as what measures; of labels with rows that a classifier learns from."""
    kind = found.source.kind
    held = {row_key(row, kind) for row in rows}
    examples: list[Row] = []
    if kind.label is not None:
        others = (row for row in found.source if row_key(row, kind) not in held)
        examples = spread(others, found.rows - len(rows), _FITTED)
    return DevelopmentSet(name, kind, rows, examples, labels_of=found.source.name)


def spread(rows: Iterable[Row], count: int, most: int) -> list[Row]:
    """At most so many of `count` rows, evenly spread over them: a file may be sorted."""
    every = max(1.0, count / most)
    return [row for place, row in enumerate(rows) if int(place / every) != int((place - 1) / every)]


def row_key(row: Row, kind: TaskKind) -> int:
    """The same for rows of the same words, whatever their label or score."""
    if kind is NEIGHBOURS:
        return _key(row["text"])
    return _key("\n".join(normalized(row[key]) for key in kind.texts if key in row))


def text_keys(row: Row, kind: TaskKind) -> set[int]:
    """One number for each text of a row."""
    return {_key(normalized(row[key])) for key in kind.texts if key in row}


def _key(text: str) -> int:
    digest = hashlib.blake2b(normalized(text).encode("utf-8", "surrogatepass"), digest_size=8)
    return int.from_bytes(digest.digest(), "big")


def _check_labels(source: Source, classes: Counter[str]) -> None:
    if source.kind.label is None:
        return
    if not 2 <= len(classes) <= _MOST_CLASSES:
        raise ValueError(
            f"{source.name}: expected 2 to {_MOST_CLASSES:,} different labels, found "
            f"{len(classes):,}" + (f": {next(iter(classes))!r}." if len(classes) == 1 else ".")
        )


def _short(value: Any) -> str:
    text = f"{value:g}" if isinstance(value, float) else " ".join(str(value).split())
    return text if len(text) <= _LINE // 2 else text[: _LINE // 2 - 1] + "…"
