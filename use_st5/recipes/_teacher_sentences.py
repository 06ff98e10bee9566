"""The sentences that the teacher of the shipped models is asked about."""

from __future__ import annotations

import dataclasses
import random
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from use_st5.evaluation.sts import sts_suite
from use_st5.recipes._generated_text import (
    generate_captions,
    generate_questions,
    generate_spans,
)
from use_st5.recipes._permissive_corpora import nouns, sentences_by_source

MAX_WORDS = 60
# The sources that spans are cut from.
SPAN_SOURCES = (
    "inference", "definitions", "examples", "medical", "trivia", "stack_exchange", "wikitext",
    "novels", "dialogues",
)  # fmt: skip
SPAN_LIMIT = 100_000
_NOT_WORDS = re.compile(r"\W+")


@dataclasses.dataclass(frozen=True)
class TeacherText:
    """How many sentences of the large sources a model learns from; the other sources are whole.

    Novels and dialogues are the bulk, and far from what people compare.

    Attributes:
        novels: Sentences of the novels.
        dialogues: Turns of the dialogues.
        captions: Generated captions.
        spans: Spans of one to six words out of the other sentences.
        questions: Generated questions, with the words of the trivia.
        related: (fewest words, most words) → how many sentences of that length get an alteration,
            which the teacher is asked about, too, and a place in a group of related sentences. The
            teacher gives hints for these.
        hints: Whether it gives them for all sentences.
    """

    novels: int
    dialogues: int
    captions: int
    spans: int
    questions: int = 0
    related: Mapping[tuple[int, int], int] = dataclasses.field(default_factory=dict)
    hints: bool = False


# Two hours of two cores see less text; the smaller samples are parts of the larger ones.
_TWO_HOURS = TeacherText(
    novels=100_000,
    dialogues=200_000,
    captions=120_000,
    spans=160_000,
    questions=120_000,
    related={
        (4, 6): 30_000,
        (7, 9): 40_000,
        (10, 13): 45_000,
        (14, 19): 40_000,
        (20, 30): 25_000,
    },
)
TEACHER_TEXTS = {
    "use_dan_en": TeacherText(novels=200_000, dialogues=400_000, captions=160_000, spans=420_000),
    "use_transformer_en": dataclasses.replace(_TWO_HOURS, hints=True),
    "st5_small_en": _TWO_HOURS,
}


def teacher_sentences(data: Path, text: TeacherText, *, seed: int = 0) -> list[str]:
    """Distinct sentences of all corpora, and generated ones, none of them from an STS set.

    Args:
        data: The folder of the corpora; STS sets that lie there too are held out.
        text: How many of them.
        seed: Of the samples and of the generated text.
    """
    held_out = held_out_sentences(data)
    limits = {"novels": text.novels, "dialogues": text.dialogues}
    sources = {
        name: _sample(read(), limits.get(name), seed=seed)
        for name, read in sentences_by_source(data).items()
    }
    material = [s for name in SPAN_SOURCES for s in sources[name][:SPAN_LIMIT]]
    sources["captions"] = list(generate_captions(text.captions, seed=seed))
    sources["spans"] = list(generate_spans(material, text.spans, seed=seed))
    if text.questions:
        trivia = sources["trivia"]
        sources["questions"] = list(
            generate_questions(trivia, nouns(data), text.questions, seed=seed)
        )
    every = dict.fromkeys(sentence for source in sources.values() for sentence in source)
    return [sentence for sentence in every if normalized(sentence) not in held_out]


def held_out_sentences(data: Path) -> set[str]:
    """The sentences of every STS set in the folder, normalized.

    Raises:
        FileNotFoundError: There is no STS set, or one is there in part: nothing could be held out.
    """
    suite, _ = sts_suite(data)
    return {
        normalized(sentence)
        for sts_set in suite.values()
        for pairs in sts_set.subsets.values()
        for pair in pairs
        for sentence in (pair.first, pair.second)
    }


def normalized(sentence: str) -> str:
    """Lowercase words alone: what two copies of a sentence share."""
    return _NOT_WORDS.sub(" ", sentence.lower()).strip()


def _sample(sentences: Iterable[str], limit: int | None, *, seed: int) -> list[str]:
    """Distinct usable sentences in random order, at most `limit`."""
    usable = list(dict.fromkeys(_usable(sentences)))
    random.Random(seed).shuffle(usable)
    return usable[:limit]


def _usable(sentences: Iterable[str]) -> Iterator[str]:
    for sentence in sentences:
        words = sentence.split()
        if 0 < len(words) <= MAX_WORDS:
            yield " ".join(words)
