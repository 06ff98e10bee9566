"""What is in the files, said before the first step: counts, lengths, duplicates, what is cut."""

from __future__ import annotations

import dataclasses
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from use_st5._streams import batched
from use_st5.data.held_out import normalized
from use_st5.training.class_record import record_text
from use_st5.training.score_range import ScoreRange, score_range
from use_st5.training.sources import Row, Source
from use_st5.training.task_rows import KnownLabels
from use_st5.training.tasks import INFERENCE, NEIGHBOURS, TEXTS, TaskSpec

_AT_ONCE = 2048
_MOST_CLASSES = 1000
_INFERENCE_LABELS = ("entailment", "neutral", "contradiction")
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
        scores: The range of the scores; None where there are none.
        positives: Of pairs with hard negatives the hash of each pair, as `hard_negatives` gives it.
        false_negatives: Hard negatives that another row has as a positive of the same text.
        left_out: Rows that validate or test.
        shared: Further rows that share a text with those.
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
    scores: ScoreRange | None = None
    positives: frozenset[int] = frozenset()
    false_negatives: int = 0
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
        return KnownLabels({name: number for number, name in enumerate(ordered)})

    def lines(self, limit: int, *, longer: bool = False) -> Iterator[str]:
        """What is to be shown: what was found, and what the encoder will not read.

        Args:
            limit: Tokens of a text that are read in training.
            longer: Whether the encoder could read more.
        """
        kind, report = self.source.kind, self.source.report
        found = ", ".join(
            key if key == column else f"{column} as {key}"
            for key, column in self.source.columns.items()
        )
        yield f"{self.source.name}: {found} → {kind.name} ({kind.description})"
        if other := {TEXTS.name: NEIGHBOURS, NEIGHBOURS.name: TEXTS}.get(kind.name):
            yield (
                f"  as {other.name} with --task {self.source.name}={other.name} "
                f"({other.description})"
            )
        bad = f", {report.malformed_rows} bad ones left out" if report.malformed_rows else ""
        skipped = report.skipped.total() - report.skipped["blank"]
        bad += f", {skipped} skipped ({', '.join(report.skipped)})" if skipped else ""
        repeated = f", {self.repeated:,} of them repeated" if self.repeated else ""
        if self.otherwise:
            repeated += f" ({self.otherwise:,} with another {kind.gold} than before)"
        yield f"  {self.rows:,} rows{repeated}{bad}"
        yield from (f"    {offence}" for offence in report.offences)
        if self.false_negatives:
            yield (
                f"  {self.false_negatives:,} hard negatives are positives of the same text in "
                "other rows: they are not used"
            )
        yield self._lengths(limit, longer=longer)
        if self.classes:
            shown = ", ".join(f"{name} {count:,}" for name, count in self.classes.most_common(8))
            more = f", … ({len(self.classes)} labels)" if len(self.classes) > 8 else ""
            yield f"  labels: {shown}{more}"
        if self.scores is not None:
            yield "  " + self.scores.line(self.lowest, self.highest)
        for row in self.first:
            yield "  e.g. " + " | ".join(_short(row[key]) for key in row)

    def _lengths(self, limit: int, *, longer: bool) -> str:
        middle, most = np.median(self.lengths), self.lengths.max()
        shown = f"  {len(self.lengths):,} texts of {middle:.0f} tokens (median), {most:,} at most; "
        if not (cut := int((self.lengths > limit).sum())):
            return f"{shown}none is cut"
        return (
            f"{shown}training cuts {cut:,} of them ({cut / len(self.lengths):.1%}) at {limit:,} "
            "tokens" + (" (--max-tokens changes this)" if longer else ", all that the model reads")
        )


def survey(source: Source, vectorizer: Any, *, scores: Sequence[float] | None = None) -> Survey:
    """Reads a source once.

    Args:
        source: What to read.
        vectorizer: Counts the tokens.
        scores: The lowest and the highest score that there can be; None: as the rows suggest.

    Raises:
        ValueError: There is no usable row, or its labels or scores say nothing.
    """
    kind = source.kind
    classes: Counter[str] = Counter()
    lengths: list[np.ndarray] = []
    golds, pairs = _Golds(), _Pairs()
    extremes: list[float] = []
    first: list[Row] = []
    rows = 0
    for chunk in batched(source.watched(), _AT_ONCE):
        first = first or chunk[:2]
        rows += len(chunk)
        golds.add(chunk, kind)
        pairs.add(chunk, kind)
        texts = [row[key] for row in chunk for key in kind.texts if key in row]
        lengths.append(np.asarray(vectorizer.token_counts(texts)))
        if kind.label is not None:
            classes.update(row[kind.label] for row in chunk)
        if kind.score is not None:
            found = [row[kind.score] for row in chunk]
            extremes += [min(found), max(found)]
    if not rows:
        raise ValueError(f"{source.name}: expected rows, found none that can be used.")
    golds.check(source, rows)
    _check_labels(source, classes)
    lowest, highest = min(extremes, default=0.0), max(extremes, default=1.0)
    if lowest == highest:
        raise ValueError(f"{source.name}: expected different scores, all of them are {lowest:g}.")
    return Survey(
        source=source,
        rows=rows,
        lengths=np.concatenate(lengths),
        classes=classes,
        lowest=lowest,
        highest=highest,
        repeated=rows - len(golds.first),
        otherwise=golds.otherwise,
        first=first,
        scores=score_range(source.name, lowest, highest, scores) if extremes else None,
        positives=frozenset(pairs.positives) if pairs.negatives else frozenset(),
        false_negatives=sum(n for key, n in pairs.negatives.items() if key in pairs.positives),
    )


class _Golds:
    """The label or score that each row's words had first, and the rows that say otherwise."""

    def __init__(self) -> None:
        self.first: dict[int, Any] = {}
        self.otherwise = 0
        self._example = ""

    def add(self, rows: Iterable[Row], kind: TaskSpec) -> None:
        for row in rows:
            gold = row[kind.gold] if kind.gold else None
            before = self.first.setdefault(_words_hash(row, kind), gold)
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


class _Pairs:
    """The pairs that belong together, and those that are said not to, of a file with negatives."""

    def __init__(self) -> None:
        self.positives: set[int] = set()
        self.negatives: Counter[int] = Counter()

    def add(self, rows: Iterable[Row], kind: TaskSpec) -> None:
        for row in rows:
            negatives = [pair for _, pair in hard_negatives(row, kind)]
            if negatives:
                self.positives.add(_pair_hash(row["anchor"], row["positive"]))
                self.negatives.update(negatives)


def hard_negatives(row: Row, kind: TaskSpec) -> Iterator[tuple[str, int]]:
    """Key of each hard negative of a row, and the hash of its pair with the anchor."""
    for key in kind.optional:
        if key in row:
            yield key, _pair_hash(row["anchor"], row[key])


def text_hash(text: str) -> int:
    """The same for texts that differ in case, blanks and punctuation alone."""
    digest = hashlib.blake2b(normalized(text).encode("utf-8", "surrogatepass"), digest_size=8)
    return int.from_bytes(digest.digest(), "big")


def _pair_hash(anchor: str, other: str) -> int:
    return hash((text_hash(anchor), text_hash(other)))


def _words_hash(row: Row, kind: TaskSpec) -> int:
    """The same for rows of the same words in the same columns, whatever their label or score."""
    if kind is NEIGHBOURS:
        return text_hash(row["text"])
    return text_hash("\n".join(normalized(row[key]) for key in kind.texts if key in row))


def _check_labels(source: Source, classes: Counter[str]) -> None:
    if source.kind.label is None:
        return
    if not 2 <= len(classes) <= _MOST_CLASSES:
        raise ValueError(
            f"{source.name}: expected 2 to {_MOST_CLASSES:,} different labels, found "
            f"{len(classes):,}" + (f": {next(iter(classes))!r}." if len(classes) == 1 else ".")
        )
    record_text(sorted(classes), {}, where=source.name)  # Before the training, not after it.


def _short(value: Any) -> str:
    text = f"{value:g}" if isinstance(value, float) else " ".join(str(value).split())
    return text if len(text) <= _LINE // 2 else text[: _LINE // 2 - 1] + "…"
