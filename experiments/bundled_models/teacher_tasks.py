"""The data of tasks with teachers: sentences by length, and groups of related sentences."""

from __future__ import annotations

import abc
import dataclasses
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from experiments.bundled_models.related_sentences import GROUP_SIZE, Length, related_rows
from experiments.held_out import held_out_sentences, without_held_out
from use_st5.data import DataFolder, PreparedColumn
from use_st5.evaluation import STS_SOURCES, read_sts
from use_st5.training import ArrayData

if TYPE_CHECKING:
    from experiments.bundled_models.teacher_text import TextWithVectors
    from experiments.corpus_tasks import CorpusTask, Source


@dataclasses.dataclass(frozen=True, kw_only=True)
class _ByLength(abc.ABC):
    """Sentences with the teachers' vectors, in parts by length.

    The arrays on disk hold ids and the number of each text; the vectors come from the teachers'
    folder when a batch is made. All batches of a part have the same width, the most tokens of its
    length. The material is a `TextWithVectors`.

    Attributes:
        lengths: Name → (fewest words, most words, most tokens).
        ids: The kind of column that holds the encoder's ids of a sentence, "ids" or "token_ids".
        hints: Whether batches have the teachers' hints, too.
        lowercase: Share of the sentences that the student reads in lowercase; the teachers do not
            tell cases apart.
    """

    lengths: Mapping[str, tuple[int, int, int]]
    ids: Literal["ids", "token_ids"]
    hints: bool = False
    lowercase: float = 0.0

    def sources(self, task: str, material: TextWithVectors) -> dict[str, Source]:
        """A part for each length, named `TASK_LENGTH`."""
        return {
            f"{task}_{name}": self._source(material, (fewest, most), max_tokens)
            for name, (fewest, most, max_tokens) in self.lengths.items()
        }

    def array_data(self, arrays: Mapping[str, np.ndarray], material: TextWithVectors) -> ArrayData:
        """The batches of a part, with the teachers' vectors."""
        return TeacherArrays(arrays, material, hints=self.hints)

    def _source(self, text: TextWithVectors, length: Length, max_tokens: int) -> Source:
        columns = {
            "sentence": PreparedColumn(self.ids, max_tokens=max_tokens),
            "number": PreparedColumn("label"),
        }

        def examples() -> Iterator[Mapping[str, Any]]:
            draw = random.Random(0)
            for sentence in self._sentences(text, length):
                input_text = sentence.lower() if draw.random() < self.lowercase else sentence
                yield {"sentence": input_text, "number": text.numbers[sentence]}

        return examples, columns

    @abc.abstractmethod
    def _sentences(self, text: TextWithVectors, length: Length) -> Iterable[str]:
        """The sentences whose number of words is in the range of `length`."""


class TeacherSentences(_ByLength):
    """The sentences whose vectors the teachers computed."""

    def _sentences(self, text: TextWithVectors, length: Length) -> Iterator[str]:
        fewest, most = length
        return (each for each in text.sentences if fewest <= each.count(" ") + 1 <= most)


class Related(_ByLength):
    """Groups of related sentences; the lengths are those of the text's `related`."""

    def array_data(self, arrays: Mapping[str, np.ndarray], material: TextWithVectors) -> ArrayData:
        """The batches of a part: each sentence with its alteration and its neighbours."""
        firsts = material.answers(arrays["number"][::2], hints=False)["teacher"]
        rows = related_rows(firsts)
        grouped = {name: array[rows] for name, array in arrays.items()}
        return TeacherArrays(grouped, material, hints=self.hints, group_size=GROUP_SIZE)

    def _sentences(self, text: TextWithVectors, length: Length) -> Iterator[str]:
        """Yields each sentence and then its alteration."""
        return (each for pair in text.pairs[length] for each in pair)


class TeacherArrays(ArrayData):
    """Ids of sentences; each batch looks up the teachers' vectors of its sentences.

    Args:
        arrays: "sentence", ids `[examples, length]`, and "number", the text's, `[examples]`.
        text: The texts and their teachers.
        hints: Whether batches have the teachers' hints, too.
        group_size: As in `ArrayData`.
    """

    def __init__(
        self,
        arrays: Mapping[str, np.ndarray],
        text: TextWithVectors,
        *,
        hints: bool,
        group_size: int = 1,
    ) -> None:
        self._text, self._hints = text, hints
        # Views that show the types and shapes of a batch to code that reads them, without memory.
        first = text.answers(arrays["number"][:1], hints=hints)
        views = {
            name: np.broadcast_to(row, (len(arrays["number"]), row.shape[1]))
            for name, row in first.items()
        }
        super().__init__({**arrays, **views}, group_size=group_size)

    def take(self, rows: np.ndarray, *, batch: np.ndarray | None = None) -> dict[str, np.ndarray]:
        """As in `ArrayData`."""
        del batch  # All batches have the same width.
        numbers = self.arrays["number"][rows]
        arrays = self._text.answers(numbers, hints=self._hints)
        arrays |= {"sentence": self.arrays["sentence"][rows], "number": numbers}
        return {name: arrays[name] for name in self.arrays}  # The order matters.

    def fingerprint(self, names: Sequence[str]) -> str:
        """As in `ArrayData`; a text's number stands for its vectors."""
        return super().fingerprint([name if name == "sentence" else "number" for name in names])


def scored_pairs(data: Path) -> Iterator[Mapping[str, Any]]:
    """The pairs of STS-B's training split, with scores of 0 to 1."""
    for pair in read_sts(DataFolder(data), STS_SOURCES["STS-B train"]).pairs:
        yield {"first": pair.first, "second": pair.second, "score": pair.score / 5}


def unseen_scored_pairs(data: Path) -> Iterator[Mapping[str, Any]]:
    """The scored pairs without a sentence of another STS set."""
    return without_held_out(scored_pairs(data), held_out_sentences(data))


def need_teacher(tasks: Iterable[CorpusTask]) -> bool:
    """Whether one of the tasks learns the teachers' vectors of its sentences."""
    return any(isinstance(task.data, _ByLength) for task in tasks)
