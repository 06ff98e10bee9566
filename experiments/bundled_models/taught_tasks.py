"""The data of tasks with teachers: its sentences by length, and groups of related ones."""

from __future__ import annotations

import abc
import dataclasses
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from experiments.bundled_models.related_sentences import GROUP_SIZE, Length, related_groups
from use_st5.column_kinds import KindName
from use_st5.data import PreparedColumn
from use_st5.data.data_folder import DataFolder
from use_st5.evaluation.sts import STSB_TRAIN, read_sts

if TYPE_CHECKING:
    from experiments.bundled_models.teacher_text import TaughtText
    from experiments.corpus_tasks import CorpusTask, Source

_VECTOR = PreparedColumn("vector")


@dataclasses.dataclass(frozen=True, kw_only=True)
class _ByLength(abc.ABC):
    """Sentences with the teachers' vectors, in parts by length.

    A batch is as wide as its longest row may be. The material is a `TaughtText`.

    Attributes:
        lengths: Name → (fewest words, most words, tokens that they may become).
        ids: How a sentence becomes the encoder's ids, "ids" or "token_ids".
        hints: Whether hints come with them.
        lowercase: Share of the sentences that the student reads in lowercase; the teachers do not
            tell cases apart.
    """

    lengths: Mapping[str, tuple[int, int, int]]
    ids: KindName
    hints: bool = False
    lowercase: float = 0.0
    group_size: ClassVar[int] = 1
    buckets: ClassVar[Sequence[int]] = ()

    def sources(self, task: str, material: TaughtText) -> dict[str, Source]:
        """A part for each length, `TASK_LENGTH`."""
        return {
            f"{task}_{name}": self._source(material, (fewest, most), max_tokens)
            for name, (fewest, most, max_tokens) in self.lengths.items()
        }

    def _source(self, text: TaughtText, length: Length, max_tokens: int) -> Source:
        columns = {"sentence": PreparedColumn(self.ids, max_tokens=max_tokens), "teacher": _VECTOR}
        if self.hints:
            columns["hint"] = _VECTOR

        def examples() -> Iterator[Mapping[str, Any]]:
            draw = random.Random(0)
            for sentence in self._sentences(text, length):
                read = sentence.lower() if draw.random() < self.lowercase else sentence
                example = {"sentence": read, "teacher": text.teacher.vector(sentence)}
                yield {**example, "hint": text.hint(sentence)} if self.hints else example

        return examples, columns

    @abc.abstractmethod
    def _sentences(self, text: TaughtText, length: Length) -> Iterable[str]:
        """The sentences of so many words."""


class Taught(_ByLength):
    """The sentences that the teachers were asked about."""

    def _sentences(self, text: TaughtText, length: Length) -> Iterator[str]:
        fewest, most = length
        return (each for each in text.sentences if fewest <= each.count(" ") + 1 <= most)


class Related(_ByLength):
    """Groups of related sentences; the lengths are those of the text's `related`."""

    group_size: ClassVar[int] = GROUP_SIZE

    def _sentences(self, text: TaughtText, length: Length) -> Iterator[str]:
        pairs = text.pairs[length]
        firsts = text.vectors([first for first, _ in pairs]).astype(np.float32)
        for group in related_groups(pairs, firsts):
            yield from group


def scored_pairs(data: Path) -> Iterator[Mapping[str, Any]]:
    """The pairs of STS-B's training split, with scores of 0 to 1."""
    for pair in read_sts(DataFolder(data), STSB_TRAIN).pairs:
        yield {"first": pair.first, "second": pair.second, "score": pair.score / 5}


def need_teacher(tasks: Iterable[CorpusTask]) -> bool:
    """Whether one of the tasks learns what the teachers say of its sentences."""
    return any(isinstance(task.data, _ByLength) for task in tasks)
