"""The sentences whose vectors the teachers compute."""

from __future__ import annotations

import dataclasses
import itertools
import json
import random
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.bundled_models.generated_text import (
    generate_captions,
    generate_opinions,
    generate_questions,
    generate_spans,
)
from experiments.bundled_models.related_sentences import (
    Length,
    Pair,
    altered_sentences,
    pair_texts,
)
from experiments.bundled_models.teacher import Teacher
from experiments.bundled_models.teacher_tasks import scored_pairs
from experiments.bundled_models.word_vocabulary import VocabularySettings
from experiments.corpus_sentences import nouns, sentences_by_source
from experiments.held_out import held_out_sentences
from experiments.run import write_json
from use_st5.data import DataFolder, normalized
from use_st5.evaluation import STS_SOURCES
from use_st5.tokenizers import NGramVocabulary

if TYPE_CHECKING:
    from experiments.run import Run

MAX_WORDS = 60
_OF_MEAN = 50_000  # the approximate number of texts whose hints are averaged for the mean hint


@dataclasses.dataclass(frozen=True)
class Sample:
    """A part of a source.

    Attributes:
        limit: The most sentences; None: all.
        fewest: Words of the shortest sentence.
        most: Words of the longest sentence.
    """

    limit: int | None
    fewest: int = 3
    most: int = 30


@dataclasses.dataclass(frozen=True)
class TeacherText:
    """The number of sentences of each source that a model learns from.

    Attributes:
        sources: Source → its part, the most useful source first: a sentence of two sources belongs
            to the first. The names are those of `sentences_by_source` and "sts_train";
            "captions", "questions" and "opinions" are generated.
        spans: Number of spans of one to six words out of the first sentences of `span_sources`.
        span_sources: The sources that spans are cut from.
        span_limit: The most sentences of each of these sources.
        related: (fewest words, most words) → the number of sentences of that length that get an
            alteration and a place in a group of related sentences.
        related_sources: The sources of the sentences of `related`.
    """

    sources: Mapping[str, Sample]
    spans: int = 0
    span_sources: Sequence[str] = ()
    span_limit: int = 30_000
    related: Mapping[Length, int] = dataclasses.field(default_factory=dict)
    related_sources: Sequence[str] = ()

    def opened(self, run: Run, teacher: Path) -> TextWithVectors:
        """Opens the sentences in a run's folder, with the teachers' vectors in another folder."""
        held_out = partial(held_out_sentences, run.data)
        return TextWithVectors(self, run.data, run.prepared, Teacher(teacher), held_out)


# With alterations and single words these are 1.8 million texts: the teachers need minutes on an
# accelerator, or 7 to 14 hours on two cores. Sentences that people compare come first.
TEXT = TeacherText(
    sources={
        "sts_train": Sample(None, most=40),
        "inference": Sample(None),
        "examples": Sample(None, fewest=2),
        "films": Sample(None),
        "opinions": Sample(100_000, fewest=2),
        "questions": Sample(50_000),
        "captions": Sample(50_000),
        "definitions": Sample(None, fewest=2),
        "trivia": Sample(None, fewest=4),
        "talk": Sample(None),
        "stack_exchange": Sample(None, fewest=4),
        "wikitext": Sample(None, fewest=5),
        "medical": Sample(100_000, fewest=4),
        "novels": Sample(400_000, fewest=4),
        "tasks": Sample(120_000),
    },
    spans=60_000,
    span_sources=("inference", "examples", "films", "definitions", "trivia", "sts_train"),
    related={
        (4, 9): 100_000,
        (10, 16): 90_000,
        (17, 30): 50_000,
    },
    related_sources=(
        "sts_train",
        "inference",
        "examples",
        "films",
        "captions",
        "opinions",
        "questions",
        "talk",
    ),
)

# A sample of them for short runs: some 210,000 texts with the single words and pieces, which take
# half an hour on two cores.
SHORT_TEXT = dataclasses.replace(
    TEXT,
    sources={
        name: dataclasses.replace(sample, limit=6_000) for name, sample in TEXT.sources.items()
    },
    spans=6_000,
    related={length: count // 10 for length, count in TEXT.related.items()},
)


class TextWithVectors:
    """Sentences, made once and kept in a folder, and the teachers' vectors of them.

    Args:
        settings: The sources and numbers of the sentences.
        data: Folder of the corpora.
        prepared: Folder that keeps sentences and vocabulary.
        teacher: The teachers' vectors.
        held_out: Returns the normalized sentences that no text may be equal to.
    """

    def __init__(
        self,
        settings: TeacherText,
        data: Path,
        prepared: Path,
        teacher: Teacher,
        held_out: Callable[[], Collection[str]],
    ) -> None:
        self.settings = settings
        self.data = data
        self.prepared = prepared
        self.teacher = teacher
        self._read_held_out = held_out

    @cached_property
    def held_out(self) -> Collection[str]:
        """The normalized sentences that no text may be equal to."""
        return self._read_held_out()

    @property
    def sentences(self) -> list[str]:
        """All sentences and spans, without the alterations."""
        return [text for texts in self._texts["sources"].values() for text in texts]

    @cached_property
    def pairs(self) -> dict[Length, list[Pair]]:
        """Sentences and their alterations by length."""
        return {
            (fewest, most): [(first, second) for first, second in pairs]
            for fewest, most, pairs in self._texts["related"]
        }

    def vocabulary(self, settings: VocabularySettings) -> NGramVocabulary:
        """The words of the sentences, counted once and kept in the folder."""
        path = self.prepared / "vocabulary.txt"
        if not path.exists():
            settings.wordpieces(self.data)  # A missing file is reported before the counting.
            sentences = self.sentences
            corpora = (each for make in sentences_by_source(self.data).values() for each in make())
            settings.build(self.data, sentences, corpora).save(path)
        return NGramVocabulary.load(path)

    def check(self, words: Sequence[str] = (), *, sentences: bool = True) -> None:
        """Checks that the teachers' vectors are there.

        Args:
            words: Single words or pieces.
            sentences: Whether the vectors of sentences and alterations must be there, too.
        """
        self.teacher.check([*(self.numbers if sentences else ()), *words])

    @cached_property
    def numbers(self) -> dict[str, int]:
        """Sentences, spans and alterations, each with its number."""
        texts = dict.fromkeys([*self.sentences, *pair_texts(self.pairs)])
        return {text: number for number, text in enumerate(texts)}

    def answers(self, numbers: np.ndarray, *, hints: bool) -> dict[str, np.ndarray]:
        """The teachers' vectors, and hints if wanted, of texts.

        Args:
            numbers: The numbers of the texts, `[texts]`.
            hints: Whether to return hints, too.

        Returns:
            "teacher", float32 `[texts, TEACHER_DIM]`, and "hint", `[texts, HINT_DIM]`: a text's
            hint minus the mean hint, which is the largest part of each and teaches nothing.
        """
        vectors, hint_vectors = self.teacher.answers(self._places[numbers])
        return {"teacher": vectors} | ({"hint": hint_vectors - self._mean_hint} if hints else {})

    def vectors(self, texts: Sequence[str]) -> np.ndarray:
        """The teachers' vectors of any texts, float32 `[texts, TEACHER_DIM]`."""
        return self.teacher.answers(self.teacher.places(texts))[0]

    @cached_property
    def _places(self) -> np.ndarray:
        return self.teacher.places([*self.numbers])

    @cached_property
    def _mean_hint(self) -> np.ndarray:
        mean_places = self._places[:: max(1, len(self._places) // _OF_MEAN)]
        return (
            self.teacher.answers(mean_places)[1].mean(axis=0, dtype=np.float64).astype(np.float32)
        )

    @cached_property
    def _texts(self) -> dict[str, Any]:
        """The content of `sentences` and `pairs`; made and written if the folder has none."""
        path, settings = self.prepared / "texts.json", repr(self.settings)
        if not path.exists():
            self.prepared.mkdir(parents=True, exist_ok=True)
            sources = teacher_sentences(self.data, self.settings, self.held_out)
            related = related_pairs(sources, self.settings, self.held_out)
            write_json(path, {"settings": settings, "sources": sources, "related": related})
        record = json.loads(path.read_text(encoding="utf-8"))
        if record["settings"] != settings:
            raise ValueError(
                f"{self.prepared} was prepared with other settings. Use another folder, or remove "
                f"it.\n  the folder: {record['settings']}\n  wanted now: {settings}"
            )
        return record


def teacher_sentences(
    data: Path, text: TeacherText, held_out: Collection[str], *, seed: int = 1
) -> dict[str, list[str]]:
    """Distinct sentences by source, none of them held out.

    Args:
        data: The folder of the corpora.
        text: The number of sentences of each source.
        held_out: Normalized sentences that must not be among them.
        seed: Seed of the samples and of the generated text.
    """
    readers = {**sentences_by_source(data), "sts_train": lambda: _sts_train(data)}
    raw = {name: [*dict.fromkeys(_usable(make()))] for name, make in readers.items()}
    raw |= {
        name: [*dict.fromkeys(make())] for name, make in _generators(data, raw, text, seed).items()
    }
    seen: set[str] = set()

    def chosen(sentences: list[str], sample: Sample) -> Iterator[str]:
        random.Random(seed).shuffle(sentences)
        for sentence in sentences:
            fits = sample.fewest <= sentence.count(" ") + 1 <= sample.most
            if fits and sentence not in seen and normalized(sentence) not in held_out:
                seen.add(sentence)
                yield sentence

    by_source = {
        name: list(itertools.islice(chosen(raw[name], sample), sample.limit))
        for name, sample in text.sources.items()
    }
    material = [s for name in text.span_sources for s in by_source[name][: text.span_limit]]
    spans = generate_spans(material, text.spans, seed=seed) if text.spans else ()
    return by_source | {"spans": list(chosen(list(dict.fromkeys(spans)), Sample(None, fewest=1)))}


def _generators(
    data: Path, raw: Mapping[str, list[str]], text: TeacherText, seed: int
) -> dict[str, Callable[[], Iterable[str]]]:
    """Generators of the named sources; they make twice the limit, since some texts are equal."""
    makers: dict[str, Callable[[int], Iterable[str]]] = {
        "captions": lambda count: generate_captions(count, seed=seed),
        "opinions": lambda count: generate_opinions(count, seed=seed),
        "questions": lambda count: generate_questions(raw["trivia"], nouns(data), count, seed=seed),
    }
    counts = {name: 2 * (text.sources[name].limit or 0) for name in makers if name in text.sources}
    return {name: partial(makers[name], count) for name, count in counts.items()}


def related_pairs(
    sources: Mapping[str, Sequence[str]], text: TeacherText, held_out: Collection[str]
) -> list[tuple[int, int, list[Pair]]]:
    """Sentences and their alterations, by length in words."""
    sentences = [s for name in text.related_sources for s in sources[name]]
    return [
        (fewest, most, altered_sentences(sentences, fewest, most, count, held_out=held_out))
        for (fewest, most), count in text.related.items()
    ]


def _sts_train(data: Path) -> Iterator[str]:
    """The sentences of the training split of the STS Benchmark; none if it is missing."""
    if DataFolder(data).has(STS_SOURCES["STS-B train"]):
        for pair in scored_pairs(data):
            yield from (pair["first"], pair["second"])


def _usable(sentences: Iterable[str]) -> Iterator[str]:
    for sentence in sentences:
        words = sentence.split()
        if 0 < len(words) <= MAX_WORDS:
            yield " ".join(words)
